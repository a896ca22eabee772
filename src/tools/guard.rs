//! Restricts the addresses that HTTP requests may reach.
//!
//! A tool's URL may come from a file, a redirect or a model. To keep requests out of the machine and its
//! private network, the client refuses every non-public address that the configuration does not allow. It
//! checks in three places: before it connects to a host or an address in a URL, in each DNS answer (the
//! connection uses the filtered answer, so a second lookup cannot differ), and at each redirect.

use std::error::Error as StdError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Url, redirect};

/// The maximum number of redirects followed for one request.
pub const MAX_REDIRECTS: usize = 5;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an idle connection is used again: less than the back ends keep one (gunicorn 2 s, node and uvicorn 5 s). A
/// request on one that they are just closing is lost, and the outcome of a write is unknown then.
const KEEP_IDLE: Duration = Duration::from_secs(1);

/// A reserved suffix that never resolves (RFC 6761). The client has no hook to refuse a connection, so a
/// refused one is sent to a host under this suffix and the resolver turns it into the error.
const SINK: &str = ".refused.invalid";

/// Which private addresses may be reached. The default allows none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkPolicy {
    /// Whether all addresses may be reached.
    pub allow_private: bool,
    /// Hosts that may be reached at any address: `host` for all its ports or `host:port`, as names or
    /// addresses. A host that is listed only with ports is refused on all others.
    pub allow_hosts: Vec<String>,
}

/// A request that the policy does not allow. [`refusal`] finds it among the causes of a
/// [`reqwest::Error`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct NetworkRefusal {
    /// Stable: `http.private_address`, `http.port_not_allowed`, `http.redirect_downgrade` or
    /// `http.too_many_redirects`.
    pub code: &'static str,
    /// What was refused and which setting would allow it.
    pub message: String,
}

impl NetworkPolicy {
    /// Checks whether the host in `url` may be reached. A name passes here; the addresses it resolves to are
    /// checked when the client of [`http_client`] connects.
    pub fn check(&self, url: &Url) -> Result<(), NetworkRefusal> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default();
        if self.allow_private || self.allows(host, port) {
            return Ok(());
        }
        if let Some(address) = parse_address(host) {
            return if is_public(address) { Ok(()) } else { Err(private_address(host)) };
        }
        if self.lists_host(host) {
            let message = format!(
                "{host} may not be reached on port {}: `scenes.allow_hosts` allows it on other ports only",
                port.unwrap_or_default()
            );
            return Err(NetworkRefusal { code: "http.port_not_allowed", message });
        }
        Ok(())
    }

    /// Checks whether the host in `url` is a name of this machine (`localhost`, RFC 6761) that may not be reached. Such a
    /// name need not be resolved to know that every request would be refused.
    pub fn check_localhost(&self, url: &Url) -> Result<(), NetworkRefusal> {
        let host = url.host_str().unwrap_or_default();
        let is_local = host == "localhost" || host.ends_with(".localhost");
        let is_allowed = self.allow_private || self.allows(host, url.port_or_known_default());
        if is_local && !is_allowed { Err(private_address(host)) } else { Ok(()) }
    }

    /// Checks whether the redirect from `previous` to `next` may be followed.
    pub fn check_redirect(&self, previous: &Url, next: &Url) -> Result<(), NetworkRefusal> {
        if previous.scheme() == "https" && next.scheme() != "https" {
            return Err(NetworkRefusal {
                code: "http.redirect_downgrade",
                message: format!(
                    "{} redirects from https to {}, which is not followed",
                    previous.host_str().unwrap_or_default(),
                    next.scheme()
                ),
            });
        }
        self.check(next)
    }

    /// Entries of `allow_hosts` that are neither a host nor `host:port`.
    pub fn malformed_hosts(&self) -> impl Iterator<Item = &str> {
        self.allow_hosts.iter().map(String::as_str).filter(|entry| split_host_port(entry).is_none())
    }

    fn allows(&self, host: &str, port: Option<u16>) -> bool {
        self.entries().any(|(name, only)| is_same_host(name, host) && (only.is_none() || only == port))
    }

    fn lists_host(&self, host: &str) -> bool {
        self.entries().any(|(name, _)| is_same_host(name, host))
    }

    fn entries(&self) -> impl Iterator<Item = (&str, Option<u16>)> {
        self.allow_hosts.iter().filter_map(|entry| split_host_port(entry))
    }
}

/// A client that reaches only what `policy` allows, follows at most [`MAX_REDIRECTS`] redirects and ignores
/// the proxies of the environment. Fails if TLS cannot be set up.
pub fn http_client(policy: &NetworkPolicy) -> Result<reqwest::Client, reqwest::Error> {
    let rules = policy.clone();
    let redirects = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            let host = attempt.url().host_str().unwrap_or_default().to_owned();
            return attempt.error(too_many_redirects(&host));
        }
        let allowed = match attempt.previous().last() {
            Some(previous) => rules.check_redirect(previous, attempt.url()),
            None => rules.check(attempt.url()),
        };
        match allowed {
            Ok(()) => attempt.follow(),
            Err(refused) => attempt.error(refused),
        }
    });
    guarded(policy).redirect(redirects).build()
}

/// Like [`http_client`], but returns redirects to callers that apply their own rules to them.
pub(super) fn http_client_without_redirects(
    policy: &NetworkPolicy,
) -> Result<reqwest::Client, reqwest::Error> {
    guarded(policy).redirect(redirect::Policy::none()).build()
}

/// The policy's refusal that caused `error`, if any.
pub fn refusal(error: &reqwest::Error) -> Option<&NetworkRefusal> {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<NetworkRefusal>() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

pub(super) fn too_many_redirects(host: &str) -> NetworkRefusal {
    NetworkRefusal {
        code: "http.too_many_redirects",
        message: format!("{host} redirects more than {MAX_REDIRECTS} times"),
    }
}

fn guarded(policy: &NetworkPolicy) -> reqwest::ClientBuilder {
    let rules = policy.clone();
    let sink = reqwest::Proxy::custom(move |url| {
        let refused = rules.check(url).is_err();
        refused.then(|| {
            let host = url.host_str().unwrap_or_default();
            format!("http://{}{SINK}", host.trim_matches(['[', ']']).replace(':', "-"))
        })
    });
    reqwest::Client::builder()
        .no_proxy()
        .proxy(sink)
        .referer(false)
        .dns_resolver(Arc::new(GuardedDns { policy: policy.clone() }))
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(KEEP_IDLE)
        .user_agent(concat!("proscenium/", env!("CARGO_PKG_VERSION")))
}

struct GuardedDns {
    policy: NetworkPolicy,
}

impl Resolve for GuardedDns {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        if let Some(refused) = host.strip_suffix(SINK) {
            let refused = private_address(refused);
            return Box::pin(async move { Err(refused.into()) });
        }
        let everything = self.policy.allow_private || self.policy.lists_host(&host);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let none = found.is_empty();
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|address| everything || is_public(address.ip())).collect();
            if allowed.is_empty() && !none {
                return Err(private_address(&host).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

fn private_address(host: &str) -> NetworkRefusal {
    NetworkRefusal {
        code: "http.private_address",
        message: format!(
            "{host} is not a public address: loopback, private and link-local addresses are reached only \
             with `scenes.allow_private_addresses = true` or the host in `scenes.allow_hosts`"
        ),
    }
}

/// `host` or `host:port`, `[v6]:port` or a bare IPv6 address.
fn split_host_port(entry: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(rest) = entry.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
    } else {
        match entry.split_once(':') {
            Some((_, rest)) if rest.contains(':') => (entry, None),
            Some((host, port)) => (host, Some(port)),
            None => (entry, None),
        }
    };
    let port = match port {
        Some(text) => Some(text.parse().ok()?),
        None => None,
    };
    let plain = !host.is_empty() && !host.contains(['/', '@', ' ', '?', '#', '*']);
    plain.then_some((host, port))
}

fn is_same_host(one: &str, other: &str) -> bool {
    match (parse_address(one), parse_address(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.trim_end_matches('.').eq_ignore_ascii_case(other.trim_end_matches('.')),
        _ => false,
    }
}

/// Parses a host that is an address. URLs contain IPv4 addresses in canonical form only.
fn parse_address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

/// Returns whether an address belongs to the public internet. An embedded IPv4 address is checked too.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = matches!(
        (a, b, c),
        (0 | 10 | 127, _, _)                 // this network, private, loopback
            | (100, 64..=127, _)             // carrier-grade NAT
            | (169, 254, _)                  // link-local, cloud metadata
            | (172, 16..=31, _)              // private
            | (192, 0, 0 | 2)                // protocol assignments, documentation
            | (192, 88, 99)                  // 6to4 relays
            | (192, 168, _)                  // private
            | (198, 18 | 19, _)              // benchmarks
            | (198, 51, 100) | (203, 0, 113) // documentation
            | (224..=255, _, _) // multicast, reserved, broadcast
    );
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let s = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low), // IPv4-mapped
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low), // NAT64
        [0x2002, high, low, ..] => embedded(high, low),            // 6to4
        [0x2001, 0..=0x01ff, ..] => false,                         // Teredo, protocol assignments
        [0x2001, 0xdb8, ..] => false,                              // documentation
        [0x3fff, 0..=0x0fff, ..] => false,                         // documentation
        // Only 2000::/3 is global unicast; the rest is loopback, local, link-local, multicast or unused.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Reply, serve};

    fn allowing(host: &str) -> NetworkPolicy {
        NetworkPolicy { allow_private: false, allow_hosts: vec![host.to_owned()] }
    }

    async fn code_of(policy: &NetworkPolicy, url: &str) -> Result<u16, String> {
        match http_client(policy).unwrap().get(url).send().await {
            Ok(response) => Ok(response.status().as_u16()),
            Err(error) => Err(refusal(&error).map_or_else(|| format!("{error:?}"), |r| r.code.to_owned())),
        }
    }

    #[test]
    fn only_the_public_internet_is_public() {
        let inside = [
            "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.9.9.9", "169.254.169.254", "172.16.0.1",
            "172.31.255.255", "192.168.1.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1",
            "fe80::1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1",
            "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::",
            "2002:c0a8:101::1", "2001::1", "2001:db8::1", "3fff::1",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        let outside = [
            "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.169.0.1",
            "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
        ];
        for address in outside {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn private_address_in_another_notation_is_refused() {
        let policy = NetworkPolicy::default();
        for host in ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "127.0.0.1."] {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            assert_eq!(policy.check(&url).unwrap_err().code, "http.private_address", "{host}");
        }
    }

    #[test]
    fn hosts_are_allowed_by_name_or_by_name_and_port() {
        let check =
            |entry: &str, url: &str| allowing(entry).check(&Url::parse(url).unwrap()).map_err(|r| r.code);
        assert_eq!(check("127.0.0.1", "http://127.0.0.1:9/"), Ok(()));
        assert_eq!(check("127.0.0.1:9", "http://127.0.0.1:9/"), Ok(()));
        assert_eq!(check("127.0.0.1:9", "http://127.0.0.1:10/"), Err("http.private_address"));
        assert_eq!(check("127.0.0.1:80", "http://127.0.0.1/"), Ok(()));
        assert_eq!(check("[::1]:80", "http://[::1]/"), Ok(()));
        assert_eq!(check("::1", "http://[::1]:7/"), Ok(()));
        assert_eq!(check("CRM.intern:8080", "http://crm.intern:8080/"), Ok(()));
        assert_eq!(check("crm.intern:8080", "http://crm.intern/"), Err("http.port_not_allowed"));
        let policy = NetworkPolicy {
            allow_hosts: ["a.b", "a.b:99999", "http://a.b", "*.b", ""].map(str::to_owned).into(),
            ..NetworkPolicy::default()
        };
        assert_eq!(policy.malformed_hosts().collect::<Vec<_>>(), ["a.b:99999", "http://a.b", "*.b", ""]);
    }

    #[tokio::test]
    async fn a_request_to_loopback_is_refused_by_default_and_served_where_allowed() {
        let server = serve([Reply::json("{}"), Reply::json("{}")]).await;
        let url = server.url("/");
        assert_eq!(code_of(&NetworkPolicy::default(), &url).await, Err("http.private_address".into()));
        assert_eq!(code_of(&allowing(&server.authority()), &url).await, Ok(200));
        let everything = NetworkPolicy { allow_private: true, ..NetworkPolicy::default() };
        assert_eq!(code_of(&everything, &url).await, Ok(200));
        assert_eq!(server.requests().len(), 2);
    }

    #[tokio::test]
    async fn name_resolving_to_private_address_is_refused() {
        let server = serve([Reply::json("{}")]).await;
        let url = format!("http://localhost:{}/", server.port());
        assert_eq!(code_of(&NetworkPolicy::default(), &url).await, Err("http.private_address".into()));
        assert_eq!(
            code_of(&NetworkPolicy::default(), "https://localhost/").await,
            Err("http.private_address".into())
        );
        assert_eq!(code_of(&allowing("localhost"), &url).await, Ok(200));
    }

    #[tokio::test]
    async fn redirect_to_refused_host_is_not_followed() {
        let inner = serve([Reply::json("{}")]).await;
        let outer = serve([Reply::redirect(302, &inner.url("/secret"))]).await;
        let result = code_of(&allowing(&outer.authority()), &outer.url("/")).await;
        assert_eq!(result, Err("http.private_address".into()));
        assert!(inner.requests().is_empty());
    }

    #[tokio::test]
    async fn endless_redirects_stop_at_the_limit() {
        let server = serve((0..10).map(|_| Reply::redirect(302, "/again"))).await;
        let result = code_of(&allowing(&server.authority()), &server.url("/")).await;
        assert_eq!(result, Err("http.too_many_redirects".into()));
        assert_eq!(server.requests().len(), MAX_REDIRECTS + 1);
    }

    #[test]
    fn a_redirect_from_https_to_http_is_refused() {
        let from = Url::parse("https://example.com/").unwrap();
        let to = Url::parse("http://example.com/").unwrap();
        let refused = NetworkPolicy::default().check_redirect(&from, &to).unwrap_err();
        assert_eq!(refused.code, "http.redirect_downgrade");
    }
}
