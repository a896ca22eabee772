//! The server under load, and the keys to it.

use std::path::Path;

use proscenium::load::LoadFault;
use reqwest::Url;
use secrecy::SecretString;

use super::super::remote;

const MAX_KEYS: usize = 100;

/// A server, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadTarget {
    /// Where requests are sent.
    pub chat: Url,
    /// The server's address, without a path.
    pub origin: String,
    /// The protocol.
    pub protocol: LoadProtocol,
}

/// A protocol of chat requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadProtocol {
    /// `POST /api/chat` of this server.
    Api,
    /// `POST …/chat/completions` of any OpenAI-compatible server.
    OpenAi,
}

/// A key, and how many of the conversations use it.
#[derive(Debug, Clone)]
pub struct LoadKey {
    /// Its name in results.
    pub name: String,
    /// The key; none for a server that needs none.
    pub secret: Option<SecretString>,
    /// Its share of the conversations, relative to the others.
    pub share: u32,
}

impl LoadProtocol {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            LoadProtocol::Api => "api",
            LoadProtocol::OpenAi => "openai",
        }
    }
}

impl LoadTarget {
    /// Reads an address. Without a path, and with `/api`, it is this server; with any other path, OpenAI-compatible.
    ///
    /// # Errors
    /// `load.url` if it is no address, has a key in it, or is that of another machine and `remote` is not given.
    pub fn parse(text: &str, remote: bool) -> Result<Self, LoadFault> {
        let fault = |why: &str| LoadFault::new("load.url", format!("the address {why}"));
        let mut url = Url::parse(text).map_err(|error| {
            fault(&format!("cannot be read ({error}): write one such as http://127.0.0.1:8080"))
        })?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(fault("must begin with http:// or https:// and name a host"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(fault(
                "must have no user, password or query: keys belong in PROSCENIUM_API_KEY or --keys",
            ));
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_here =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !is_here && !remote {
            return Err(fault(&format!(
                "names another machine ({host}): --remote permits it. Its models cost money, and its tools may write"
            )));
        }
        let origin = url.origin().ascii_serialization();
        let path = url.path().trim_end_matches('/').to_owned();
        let (path, protocol) = match path.as_str() {
            "" | "/api" | "/api/chat" => ("/api/chat".to_owned(), LoadProtocol::Api),
            path if path.ends_with("/chat/completions") => (path.to_owned(), LoadProtocol::OpenAi),
            path => (format!("{path}/chat/completions"), LoadProtocol::OpenAi),
        };
        url.set_path(&path);
        Ok(Self { chat: url, origin, protocol })
    }
}

/// The keys of a file, or that of the environment.
///
/// # Errors
/// `load.keys` with the line. No message repeats a key.
pub fn keys(file: Option<&Path>) -> Result<Vec<LoadKey>, LoadFault> {
    let Some(file) = file else {
        return Ok(vec![LoadKey { name: "default".to_owned(), secret: remote::key(), share: 1 }]);
    };
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| LoadFault::new("load.keys", format!("{shown} cannot be read: {error}")))?;
    parse_keys(&text).map_err(|(line, why)| LoadFault::new("load.keys", format!("{shown}:{line}: {why}")))
}

fn parse_keys(text: &str) -> Result<Vec<LoadKey>, (usize, &'static str)> {
    let mut keys: Vec<LoadKey> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, key, share) = match words.as_slice() {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [name, key] => (name, key, Some(1)),
            [name, key, share] => {
                (name, key, share.parse().ok().filter(|share| (1..=1_000_000).contains(share)))
            }
            _ => return Err((at + 1, "a line is NAME KEY [SHARE]")),
        };
        let share = share.ok_or((at + 1, "SHARE is a number from 1 to 1000000"))?;
        if keys.iter().any(|known| known.name == *name) {
            return Err((at + 1, "another line has the same NAME"));
        }
        keys.push(LoadKey {
            name: (*name).to_owned(),
            secret: Some(SecretString::from((*key).to_owned())),
            share,
        });
    }
    match keys.len() {
        0 => Err((1, "there is no key: a line is NAME KEY [SHARE]")),
        1..=MAX_KEYS => Ok(keys),
        _ => Err((1, "there are more than 100 keys")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_says_the_protocol() {
        let target = |text: &str| {
            LoadTarget::parse(text, false).map(|target| (target.chat.to_string(), target.protocol))
        };
        let api = |text: &str| {
            assert_eq!(target(text), Ok(("http://127.0.0.1:8080/api/chat".to_owned(), LoadProtocol::Api)))
        };
        ["http://127.0.0.1:8080", "http://127.0.0.1:8080/", "http://127.0.0.1:8080/api"]
            .into_iter()
            .for_each(api);
        let openai = Ok(("http://[::1]:1/v1/chat/completions".to_owned(), LoadProtocol::OpenAi));
        assert_eq!(target("http://[::1]:1/v1/"), openai);
        assert_eq!(target("http://[::1]:1/v1/chat/completions"), openai);
        for bad in [
            "127.0.0.1:8080", "ftp://localhost/", "http://u:p@localhost/", "http://localhost/?k=1",
            "http://example.com",
        ] {
            let fault = target(bad).unwrap_err();
            assert!(fault.code == "load.url" && !fault.message.contains("u:p"), "{bad}: {fault}");
        }
        assert!(LoadTarget::parse("https://example.com/v1", true).is_ok());
    }

    #[test]
    fn keys_have_names_and_shares_and_are_never_in_a_message() {
        let keys = parse_keys("# tenants\nflood psk_a 9\n\ntrickle psk_b\n").unwrap();
        let read: Vec<_> = keys.iter().map(|key| (key.name.as_str(), key.share)).collect();
        assert_eq!(read, [("flood", 9), ("trickle", 1)]);
        for (bad, line) in [("a", 1), ("a psk_x 0", 1), ("a psk_x\na psk_y", 2), ("", 1), ("a b c d", 1)] {
            let (at, why) = parse_keys(bad).unwrap_err();
            assert!(at == line && !why.contains("psk_"), "{bad}: {at} {why}");
        }
    }
}
