//! Passwords in URLs, hidden wherever a URL of the configuration is shown.

/// What stands for what is hidden.
const HIDDEN: &str = "***";
/// Parts of the names of query parameters that carry secrets.
const SECRET: [&str; 6] = ["key", "token", "secret", "pass", "sig", "auth"];

/// The same text with the passwords of all URLs in it hidden: what stands before the `@` of a host, and the
/// values of query parameters that are named like secrets. A user's name stays where a password follows it.
pub fn without_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let (url, later) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let tail = hide_user(url, &mut out);
        hide_query(tail, &mut out);
        rest = later;
    }
    out.push_str(rest);
    out
}

/// A setting that is meant to be a URL, with its password and the secrets of its query hidden. What it is
/// instead may come from a slip of the hand, and some slips are still understood (`http:/user:password@host`):
/// unless there plainly is a host and nothing before it, all up to the last `@` is hidden, but for the scheme
/// and a user's name that a password follows.
pub fn url_without_passwords(url: &str) -> String {
    let rest = after_scheme(url);
    let authority = rest.find(['/', '?', '#', '\\']).map_or(rest, |end| &rest[..end]);
    let plain = url[..url.len() - rest.len()].ends_with("://") && is_host(authority);
    let mut out = url[..url.len() - rest.len()].to_owned();
    let tail = match rest.rfind('@') {
        Some(at) if !plain => {
            if let Some((user, _)) = rest[..at].split_once(':') {
                out.push_str(user);
                out.push(':');
            }
            out.push_str(HIDDEN);
            &rest[at..]
        }
        _ => rest,
    };
    hide_query(tail, &mut out);
    out
}

/// What follows the scheme, as lenient as parsers are: `http:` may have any number of slashes of either kind.
fn after_scheme(url: &str) -> &str {
    let trimmed = url.trim_start();
    let scheme = trimmed.split(':').next().unwrap_or_default();
    let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    match trimmed.split_once("://") {
        _ if known => trimmed[scheme.len()..].trim_start_matches(':').trim_start_matches(['/', '\\']),
        Some((other, rest)) if other.len() == scheme.len() => rest,
        _ => trimmed.trim_start_matches(['/', '\\']),
    }
}

/// Whether it is a host, with or without a port, and nothing else.
fn is_host(authority: &str) -> bool {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let right = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let named = address.is_some_and(|host| host.chars().all(|c| c.is_ascii_hexdigit() || c == ':'))
        || (!host.is_empty() && host.chars().all(right));
    named && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Writes what stands before the host, and gives the rest.
fn hide_user<'u>(url: &'u str, out: &mut String) -> &'u str {
    let authority = url.find(['/', '?', '#', '\\']).map_or(url, |end| &url[..end]);
    // A password with a `/` in it ends the host early, and what should be a port is none.
    let torn = !authority.contains('@') && !authority.is_empty() && !is_host(authority);
    let within = if torn { url } else { authority };
    let Some(at) = within.rfind('@') else { return url };
    if let Some((user, _)) = url[..at].split_once(':') {
        out.push_str(user);
        out.push(':');
    }
    out.push_str(HIDDEN);
    &url[at..]
}

fn hide_query(url: &str, out: &mut String) {
    let Some((path, query)) = url.split_once('?') else { return out.push_str(url) };
    out.push_str(path);
    for (index, pair) in query.split('&').enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret(name) => {
                out.push_str(name);
                out.push('=');
                out.push_str(HIDDEN);
            }
            _ => out.push_str(pair),
        }
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_and_the_rest_stays() {
        for (text, shown) in [
            ("https://u:hunter2@host/v1", "https://u:***@host/v1"),
            (
                "at `http://hunter2@host:80`, twice http://u:hun@ter2@[::1]/",
                "at `http://***@host:80`, twice http://u:***@[::1]/",
            ),
            ("http://u:hun/ter2@host", "http://u:***@host"),
            ("http://u:fade/ter2@host", "http://u:***@host"),
            ("htp://u:hunter2@host", "htp://u:***@host"),
            ("https://host/v1?api-key=hunter2&v=1&sig=", "https://host/v1?api-key=***&v=1&sig="),
            ("https://host:8443/a@b?c=d@e", "https://host:8443/a@b?c=d@e"),
            ("http://[fe80::1]/a@b", "http://[fe80::1]/a@b"),
            ("somebody@example.com, a://, ://", "somebody@example.com, a://, ://"),
            ("", ""),
        ] {
            assert_eq!(without_passwords(text), shown, "{text}");
        }
    }
    #[test]
    fn a_setting_with_a_slip_of_the_hand_hides_its_password_too() {
        for (url, shown) in [
            ("https://u:hunter2@host/v1", "https://u:***@host/v1"),
            ("https://hunter2@host/v1", "https://***@host/v1"),
            ("u:hunter2@host:80/v1", "u:***@host:80/v1"),
            ("hunter2@host", "***@host"),
            ("//u:hunter2@host/v1", "//u:***@host/v1"),
            ("http:u:hunter2@host", "http:u:***@host"),
            ("HTTP:/u:hunter2@host", "HTTP:/u:***@host"),
            (r"http:\\u:hunter2@host", r"http:\\u:***@host"),
            (" http://u:hunter2@host", " http://u:***@host"),
            ("http:///u:hunter2@host", "http:///u:***@host"),
            ("http//u:hunter2@host", "http//u:***@host"),
            ("htp://u:hunter2@host", "htp://u:***@host"),
            ("http://u:hun/ter2@host", "http://u:***@host"),
            ("http://u:fade/ter2@host", "http://u:***@host"),
            ("http://u:hun@ter2@host", "http://u:***@host"),
            ("http://u:hun@ter/2@host", "http://u:***@host"),
            ("http://u:hun'ter2@host", "http://u:***@host"),
            ("http://u:hun ter2@h ost", "http://u:***@h ost"),
            ("http://u:hun?ter2@host", "http://u:***@host"),
            ("http://u:hun#ter2@host", "http://u:***@host"),
            ("https://host/v1?api-key=hunter2&v=1", "https://host/v1?api-key=***&v=1"),
            ("https://host:8443/a@b?c=d@e", "https://host:8443/a@b?c=d@e"),
            ("http://[fe80::1]:80/a@b", "http://[fe80::1]:80/a@b"),
            ("http://[fe80::1]", "http://[fe80::1]"),
            ("host", "host"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("", ""),
        ] {
            assert_eq!(url_without_passwords(url), shown, "{url}");
            assert_eq!(without_passwords(shown), shown, "shown as it is in a longer text");
        }
    }
}
