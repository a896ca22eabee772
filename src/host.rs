//! Host names of HTTP requests and of `server.allowed_hosts`, and origins of browser pages.

use http::uri::Authority;

/// The entry of `server.allowed_hosts` that matches every name.
pub(crate) const ANY_HOST: &str = "*";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// In lower case; an IPv6 address without its brackets.
    pub(crate) name: String,
    pub(crate) port: Option<u16>,
}

impl Host {
    /// Parses `name[:port]`, as in the header `Host`.
    pub(crate) fn parse_header(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        if text.contains('@') || authority.host().is_empty() {
            return None;
        }
        let port = match text.strip_prefix(authority.host())? {
            "" | ":" => None,
            port => Some(port.strip_prefix(':')?.parse().ok()?),
        };
        let name = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        Some(Self { name, port })
    }

    pub(crate) fn address(&self) -> Option<std::net::IpAddr> {
        self.name.parse().ok()
    }

    /// Returns whether it is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.name == "localhost" || self.address().is_some_and(|address| address.is_loopback())
    }

    /// Returns whether an entry of this list names it, with its port if the entry has one.
    pub(crate) fn is_allowed(&self, allowed: &[String]) -> bool {
        let entries = allowed.iter().filter_map(|entry| Self::parse_header(entry));
        entries
            .into_iter()
            .any(|entry| entry.name == self.name && (entry.port.is_none() || entry.port == self.port))
    }
}

/// The origin of a browser page, as in the header `Origin` and in `server.allowed_origins`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageOrigin {
    is_https: bool,
    /// With its port, also if it is that of the scheme.
    host: Host,
}

impl PageOrigin {
    /// Parses `http://HOST[:PORT]` or `https://HOST[:PORT]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (is_https, usual) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return None,
        };
        let Host { name, port } = Host::parse_header(rest)?;
        Some(Self { is_https, host: Host { name, port: port.or(Some(usual)) } })
    }
}

/// Returns whether an entry of `server.allowed_origins` is valid: an origin without `*`.
pub(crate) fn is_origin_entry(entry: &str) -> bool {
    PageOrigin::parse(entry).is_some_and(|origin| !origin.host.name.contains(ANY_HOST))
}

/// Returns whether an entry of `server.allowed_hosts` is valid: a host with an optional port, or `*`.
pub(crate) fn is_host_entry(entry: &str) -> bool {
    entry == ANY_HOST || Host::parse_header(entry).is_some_and(|host| !host.name.contains(ANY_HOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_equal_whatever_way_their_port_is_written() {
        let of = |text: &str| PageOrigin::parse(text);
        assert_eq!(of("https://Chat.example"), of("https://chat.example:443"));
        assert_eq!(of("http://[::1]"), of("http://[::1]:80"));
        assert_ne!(of("https://chat.example"), of("http://chat.example:443"));
        for wrong in [
            "", "*", "https://*", "https://*.example", "chat.example", "null", "ftp://a", "https://a/b",
            "https://a@b",
        ] {
            assert!(!is_origin_entry(wrong), "{wrong}");
        }
    }
}
