//! The scenes of evaluated files: folders as they are, and the back end in place of the one that `replies.json` speaks for.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use serde_json::Value;

use super::backend::{RepliesServer, ScriptedReplies};
use super::fault::EvalError;
use super::labels::EvalSet;
use crate::Builder;
use crate::scene::{SceneFault, SceneFolder, SceneTool, Severity, shipped_folder};

/// The file with the replies of a scene's HTTP tools.
const REPLIES_FILE: &str = "replies.json";
/// The files that may have HTTP tools.
const TOOL_FILES: [&str; 2] = ["scene.toml", "flow.toml"];

/// The folders of each set, and their back end.
pub(super) struct EvalScenes {
    pub(super) folders: Vec<Vec<SceneFolder>>,
    server: Option<RepliesServer>,
}

impl EvalScenes {
    /// Reads the folders of the sets, those inside the program from `program`, and starts their back end if one of them has
    /// replies.
    ///
    /// # Errors
    /// Unreadable folders and replies; folders that the program does not have; the address of the back end.
    pub(super) fn read(sets: &[EvalSet], program: &dyn Fn() -> Builder) -> Result<Self, EvalError> {
        let mut replies: Vec<ScriptedReplies> = Vec::new();
        // A folder with the number of its replies.
        let mut all: Vec<Vec<(SceneFolder, Option<usize>)>> = Vec::new();
        for set in sets {
            let mut of_set = Vec::new();
            for dir in &set.surroundings.scenes {
                if let Some(name) = shipped_folder(dir) {
                    let (folders, faults) = program().shipped_scenes(name);
                    let folders = without_fault(folders, &faults)?;
                    of_set.extend(folders.into_iter().map(|folder| (folder, None)));
                    continue;
                }
                for folder in read_folders(dir)? {
                    let own = read_replies(&folder)?;
                    let number = own.is_some().then_some(replies.len());
                    replies.extend(own);
                    of_set.push((folder, number));
                }
            }
            all.push(of_set);
        }
        let server = (!replies.is_empty()).then(|| listen().and_then(|at| RepliesServer::start(at, replies)));
        let server = server.transpose()?;
        let answered = |(folder, number): (SceneFolder, Option<usize>)| match (&server, number) {
            (Some(server), Some(number)) => {
                redirected(folder, &format!("http://{}/{number}", server.address()))
            }
            _ => folder,
        };
        let folders = all.into_iter().map(|of_set| of_set.into_iter().map(answered).collect()).collect();
        Ok(Self { folders, server })
    }

    /// Where the back end listens, if there is one.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(RepliesServer::address)
    }

    /// The addresses that a tool calls over HTTP for real, in Python too; none if it calls only the back end.
    pub(super) fn real_addresses(&self, tool: &SceneTool) -> BTreeSet<String> {
        let urls = declared_urls(&tool.source);
        let is_answered =
            |url: &str| self.address().is_some_and(|at| url.starts_with(&format!("http://{at}/")));
        let real = urls.into_iter().filter(|url| !is_answered(url));
        real.map(|url| origin(url).unwrap_or(url).to_owned()).collect()
    }
}

/// The addresses of an HTTP tool, or of the requests that a function in Python declares.
fn declared_urls(source: &Value) -> Vec<&str> {
    let requests = source["python"]["requests"].as_object();
    let requests = requests.into_iter().flat_map(|requests| requests.values());
    let urls = std::iter::once(&source["http"]["url"]).chain(requests.map(|request| &request["url"]));
    urls.filter_map(Value::as_str).collect()
}

fn listen() -> Result<TcpListener, EvalError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| {
        EvalError::new(
            "eval.backend",
            format!("there is no port for the back end of the scenes: {error}"),
            "",
        )
    })
}

fn read_folders(dir: &Path) -> Result<Vec<SceneFolder>, EvalError> {
    let (folders, faults) = SceneFolder::read(dir);
    without_fault(folders, &faults)
}

fn without_fault(folders: Vec<SceneFolder>, faults: &[SceneFault]) -> Result<Vec<SceneFolder>, EvalError> {
    match faults.iter().find(|fault| fault.severity == Severity::Error) {
        Some(fault) => Err(EvalError::new(
            &fault.code,
            fault.to_string(),
            "correct `scenes` of the labelled file, or `--scenes`",
        )),
        None => Ok(folders),
    }
}

/// The replies that a folder has for its HTTP tools.
fn read_replies(folder: &SceneFolder) -> Result<Option<ScriptedReplies>, EvalError> {
    let file = Path::new(&folder.label).join(REPLIES_FILE);
    if !file.exists() {
        return Ok(None);
    }
    let failed = |why: String| {
        let message = format!("{}: {why}", file.display());
        EvalError::new(
            "eval.replies",
            message,
            "write an object of replies by method and path: {\"GET /balance\": {…}}",
        )
    };
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map(Some).map_err(|error| failed(error.to_string()))
}

/// The folder with `address` in place of the scheme, host and port of its HTTP tools.
fn redirected(mut folder: SceneFolder, address: &str) -> SceneFolder {
    for file in TOOL_FILES {
        let Some(text) = folder.files.get(file).and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
            continue;
        };
        // The loader says what is wrong with a file that is no TOML.
        let Ok(table) = toml::from_str::<toml::Value>(text) else { continue };
        let mut origins = BTreeSet::new();
        collect_origins(&table, &mut origins);
        // The longest first: another may be how it begins.
        let mut origins: Vec<&str> = origins.iter().map(String::as_str).collect();
        origins.sort_by_key(|origin| std::cmp::Reverse(origin.len()));
        let text = origins.iter().fold(text.to_owned(), |text, origin| text.replace(origin, address));
        folder.files.insert(file.to_owned(), text.into_bytes());
    }
    folder
}

/// The scheme, host and port of every key `url`.
fn collect_origins(value: &toml::Value, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            let url = table.get("url").and_then(toml::Value::as_str);
            found.extend(url.and_then(origin).map(str::to_owned));
            table.values().for_each(|value| collect_origins(value, found));
        }
        toml::Value::Array(items) => items.iter().for_each(|item| collect_origins(item, found)),
        _ => {}
    }
}

fn origin(url: &str) -> Option<&str> {
    let host = url.find("://").filter(|_| url.starts_with("http"))? + 3;
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end);
    url.get(..end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_tool_calls_is_an_address() {
        let hook = json!({"http": {"url": "https://hooks.example/a", "body": {"url": "{callback}"}}});
        assert_eq!(declared_urls(&hook), ["https://hooks.example/a"]);
        let function = json!({"python": {"requests": {"rate": {"url": "https://rates.example/{day}"}}}});
        assert_eq!(declared_urls(&function), ["https://rates.example/{day}"]);
        assert_eq!(declared_urls(&json!({"native": "weather"})), [""; 0]);
    }

    #[test]
    fn every_address_of_a_scene_with_replies_is_replaced() {
        let text = "[tools.http]\nurl = \"http://bank.example/balance?of={of}\"\n\
                    [[nodes]]\nhttp = {url = \"https://bank.example:8443/a\"}\n";
        let files = [("scene.toml".to_owned(), text.as_bytes().to_vec())].into_iter().collect();
        let folder = redirected(SceneFolder { label: "bank".into(), files }, "http://127.0.0.1:9/0");
        let text = String::from_utf8(folder.files["scene.toml"].clone()).unwrap();
        assert!(text.contains("url = \"http://127.0.0.1:9/0/balance?of={of}\""), "{text}");
        assert!(text.contains("url = \"http://127.0.0.1:9/0/a\"") && !text.contains("example"), "{text}");
    }
}
