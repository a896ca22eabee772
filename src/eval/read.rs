//! Reads files of labelled requests and of scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

use super::fault::EvalFileFault;
use super::labels::{EvalSet, LabelledConversation, LabelledRequest, Surroundings};
use super::scenario::Scenario;
use crate::nearest::nearest;
use crate::scene::shipped_folder;

/// The largest file, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum number of requests of an evaluation.
const MAX_REQUESTS: usize = 100_000;

/// A file: requests with labels, scenarios, or both.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EvalFile {
    clock: Option<String>,
    time_zone: Option<String>,
    #[serde(default)]
    scenes: Vec<PathBuf>,
    builtin: Option<bool>,
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    #[serde(default)]
    requests: Vec<LabelledRequest>,
    #[serde(default)]
    scenarios: Vec<Scenario>,
}

/// The labelled requests of these files. Files with the same surroundings share a set.
///
/// # Errors
/// All faults that were found: unreadable files, keys that do not exist, ids that are used twice, contradictory labels.
pub fn read_files(files: &[PathBuf]) -> Result<Vec<EvalSet>, Vec<EvalFileFault>> {
    let mut sets: Vec<EvalSet> = Vec::new();
    let (mut faults, mut ids) = (Vec::new(), BTreeMap::new());
    let mut count = 0;
    for file in files {
        let set = match read_text(file).and_then(|text| read_file(file, &text)) {
            Ok(set) => set,
            Err(found) => {
                faults.extend(found);
                continue;
            }
        };
        for request in set.requests() {
            count += 1;
            if let Some(place) = ids.insert(request.id.clone(), (file.clone(), request.line)) {
                let message = format!(
                    "the id {:?} is also the id of a request in {}, line {}",
                    request.id,
                    place.0.display(),
                    place.1
                );
                faults.push(fault(
                    request,
                    "eval.duplicate_id",
                    message,
                    "give each request an id of its own",
                ));
            }
            faults.extend(contradictions(request));
        }
        match sets.iter_mut().find(|earlier| earlier.surroundings == set.surroundings) {
            Some(earlier) => earlier.conversations.extend(set.conversations),
            None => sets.push(set),
        }
    }
    if count > MAX_REQUESTS {
        let message = format!("there are {count} requests; at most {MAX_REQUESTS} are allowed");
        let file = files.first().cloned().unwrap_or_default();
        faults.push(EvalFileFault::new(&file, "eval.too_many", message, "evaluate fewer files at once"));
    }
    if faults.is_empty() { Ok(sets) } else { Err(faults) }
}

/// The scenarios of a file as they are written.
///
/// # Errors
/// Why it cannot be read.
pub fn read_scenarios(file: &Path) -> Result<Vec<Scenario>, Vec<EvalFileFault>> {
    parse(file, &read_text(file)?).map(|read| read.scenarios)
}

impl EvalSet {
    /// Its requests, in order.
    pub fn requests(&self) -> impl Iterator<Item = &LabelledRequest> {
        self.conversations.iter().flat_map(|conversation| &conversation.turns)
    }
}

fn read_text(file: &Path) -> Result<String, Vec<EvalFileFault>> {
    let unreadable = |why: String| {
        let message = format!("the file cannot be read: {why}");
        vec![EvalFileFault::new(
            file,
            "eval.file",
            message,
            "name a YAML file of labelled requests or scenarios",
        )]
    };
    let open = std::fs::File::open(file).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    let read = open.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(unreadable(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

fn parse(file: &Path, text: &str) -> Result<EvalFile, Vec<EvalFileFault>> {
    serde_norway::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        let remedy = match nearest_key(&message) {
            Some(key) => format!("did you mean {key:?}?"),
            None => "the keys are in tests/eval/README.md of the sources".to_owned(),
        };
        let line = error.location().map(|location| location.line());
        vec![EvalFileFault { line, ..EvalFileFault::new(file, "eval.syntax", message, &remedy) }]
    })
}

/// Of serde's error about an unknown key, the known key that is closest to it.
fn nearest_key(message: &str) -> Option<&str> {
    let (given, known) = message.split_once("unknown field `")?.1.split_once("`, expected ")?;
    // Names in backticks: each second part.
    nearest(given, known.split('`').skip(1).step_by(2))
}

/// The labelled requests of a text. `file` is named in faults, and its folder is where relative paths begin.
pub(super) fn read_file(file: &Path, text: &str) -> Result<EvalSet, Vec<EvalFileFault>> {
    let read = parse(file, text)?;
    let base = file.parent().unwrap_or(Path::new(""));
    let mut faults = Vec::new();
    let clock = clock(file, text, read.clock.as_deref(), &mut faults);
    if let Some(zone) = read.time_zone.as_deref()
        && TimeZone::get(zone).is_err()
    {
        let message = format!("`time_zone` = {zone:?} is not a time zone");
        let line = line_from(text, 1, "time_zone:");
        let remedy = "write an IANA name such as Europe/Rome";
        faults.push(EvalFileFault { line, ..EvalFileFault::new(file, "eval.clock", message, remedy) });
    }
    let requests = read.requests.into_iter().map(|request| LabelledConversation { turns: vec![request] });
    let scenarios = read.scenarios.iter().flat_map(Scenario::conversations);
    let mut conversations: Vec<LabelledConversation> = requests.chain(scenarios).collect();
    if conversations.is_empty() {
        let remedy = "add a list `requests` or `scenarios`";
        faults.push(EvalFileFault::new(file, "eval.empty", "there is no request in it", remedy));
    }
    for request in conversations.iter_mut().flat_map(|conversation| &mut conversation.turns) {
        request.file = file.to_owned();
        let id = request.id.split('/').next().unwrap_or_default();
        request.line = line_of_id(text, id).unwrap_or(1);
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let surroundings = Surroundings {
        clock,
        time_zone: read.time_zone,
        scenes: read.scenes.iter().map(|folder| located(base, folder)).collect(),
        builtin: read.builtin,
        settings: read.settings,
    };
    Ok(EvalSet { surroundings, conversations })
}

/// A folder of scenes, relative to that of the file unless it is inside the program.
fn located(base: &Path, folder: &Path) -> PathBuf {
    match shipped_folder(folder) {
        Some(_) => folder.to_owned(),
        None => base.join(folder),
    }
}

fn clock(file: &Path, text: &str, given: Option<&str>, faults: &mut Vec<EvalFileFault>) -> Option<Timestamp> {
    let given = given?;
    let parsed = given.parse::<Timestamp>();
    if parsed.is_err() {
        let message = format!("`clock` = {given:?} is not a time");
        let remedy = "write it as 2026-11-22T09:00:00+01:00";
        let line = line_from(text, 1, "clock:");
        faults.push(EvalFileFault { line, ..EvalFileFault::new(file, "eval.clock", message, remedy) });
    }
    parsed.ok()
}

/// The line with this id, from 1.
fn line_of_id(text: &str, id: &str) -> Option<usize> {
    let is_here = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ").trim_start_matches('{').trim_start();
        let value = line.strip_prefix("id:")?.trim_start().trim_start_matches(['"', '\'']);
        value
            .strip_prefix(id)
            .map(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_/.".contains(c)))
    };
    text.lines().position(|line| is_here(line) == Some(true)).map(|line| line + 1)
}

/// The first line with this text from `line` on.
fn line_from(text: &str, line: usize, what: &str) -> Option<usize> {
    let mut rest = text.lines().enumerate().skip(line.saturating_sub(1));
    rest.find(|(_, content)| content.contains(what)).map(|(at, _)| at + 1)
}

/// A fault of a request.
pub(super) fn fault(
    request: &LabelledRequest,
    code: &'static str,
    message: String,
    remedy: &str,
) -> EvalFileFault {
    let line = Some(request.line);
    EvalFileFault { line, ..EvalFileFault::new(&request.file, code, message, remedy) }
}

/// Labels that no execution could fulfil, or any.
fn contradictions(request: &LabelledRequest) -> Vec<EvalFileFault> {
    let mut found = Vec::new();
    let mut add = |is_wrong: bool, what: &str, remedy: &str| {
        if is_wrong {
            let message = format!("{}: {what}", request.id);
            found.push(fault(request, "eval.labels", message, remedy));
        }
    };
    add(request.say.trim().is_empty(), "`say` is empty", "write the user's words");
    add(
        request.asks && (request.plain || request.may_ask),
        "a request that has to end with a question (`asks`) is neither `plain` nor one that `may_ask`",
        "keep one of them",
    );
    add(
        !request.is_judged() && request.check.is_empty() && request.never.is_empty(),
        "it has no label that is judged, so that nothing could be wrong",
        "say what is expected: scenes, calls, tools, answer_mentions, nothing_written, asks or status",
    );
    let texts = request.answer_mentions.iter().chain(&request.undone);
    add(
        texts.flat_map(|texts| texts.split('|')).any(|text| text.trim().is_empty()),
        "a text that the answer has to contain is empty",
        "write the text, or remove it",
    );
    let called: BTreeSet<&str> = request.labelled_calls().iter().map(|call| call.tool.as_str()).collect();
    let never = request.never.iter().any(|never| never == "any tool call");
    add(
        never && !(called.is_empty() && request.tools.is_empty()),
        "it has `calls` or `tools`, and never `any tool call`",
        "keep one of them",
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EvalSet, Vec<EvalFileFault>> {
        read_file(Path::new("dir/labels.yaml"), text)
    }

    #[test]
    fn faults_name_file_line_and_remedy() {
        let shown =
            |text: &str| -> Vec<String> { read(text).unwrap_err().iter().map(ToString::to_string).collect() };
        let unknown = shown("requests:\n  - id: a\n    say: hello\n    call: []\n");
        assert!(unknown[0].starts_with("dir/labels.yaml:"), "{unknown:?}");
        assert!(unknown[0].contains("error[eval.syntax]: requests[0]: unknown field `call`"), "{unknown:?}");
        assert!(unknown[0].ends_with("help: did you mean \"calls\"?"), "{unknown:?}");
        let argument = shown("requests:\n  - id: a\n    say: hello\n    calls: [{tool: T, argumnets: {}}]\n");
        assert!(argument[0].ends_with("help: did you mean \"arguments\"?"), "{argument:?}");
        let other = shown("requests:\n  - id: a\n    say: hello\n    zzz: 1\n");
        assert!(other[0].ends_with("help: the keys are in tests/eval/README.md of the sources"), "{other:?}");
        let wrong = shown("clock: noon\ntime_zone: Europe/Romme\nrequests: []\n");
        assert!(
            wrong[0].starts_with("dir/labels.yaml:1: error[eval.clock]: `clock` = \"noon\""),
            "{wrong:?}"
        );
        assert!(wrong[1].starts_with("dir/labels.yaml:2: error[eval.clock]: `time_zone`"), "{wrong:?}");
        assert!(wrong[2].starts_with("dir/labels.yaml: error[eval.empty]"), "{wrong:?}");
        assert_eq!(read_files(&["absent.yaml".into()]).unwrap_err()[0].code, "eval.file");
    }

    #[test]
    fn requests_know_their_lines_and_paths_are_relative_to_the_file() {
        let text = "scenes: [scenes/bank, /abs, 'shipped:lending']\nrequests:\n  - id: a-1\n    say: x\n  - {id: a, say: y}\n";
        let set = read(text).unwrap();
        assert_eq!(
            set.surroundings.scenes,
            ["dir/scenes/bank", "/abs", "shipped:lending"].map(PathBuf::from)
        );
        let lines: Vec<(&str, usize)> = set.requests().map(|one| (one.id.as_str(), one.line)).collect();
        assert_eq!(lines, [("a-1", 3), ("a", 5)]);
    }

    #[test]
    fn ids_are_unique_and_labels_do_not_contradict() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("labels.yaml");
        let text = "requests:\n  - {id: a, say: x, asks: true, plain: true}\n  - {id: a, say: y}\n";
        std::fs::write(&file, text).unwrap();
        let codes: Vec<&str> = read_files(&[file]).unwrap_err().iter().map(|fault| fault.code).collect();
        assert_eq!(codes, ["eval.labels", "eval.duplicate_id", "eval.labels"]);
    }
}
