//! Redacts passwords in URLs, wherever a URL of the configuration is displayed, and keys in log lines.

/// Replaces redacted text.
const REDACTED: &str = "***";
/// What an API key of this server begins with.
const KEY_PREFIX: &str = "psk_";
/// Query parameters whose name contains one of these are secret.
const SECRET_NAME_PARTS: [&str; 6] = ["key", "token", "secret", "pass", "sig", "auth"];

/// Redacts what is secret wherever it occurs: the passwords of URLs, and API keys of this server.
pub fn redact_secrets(text: String) -> String {
    if !text.contains("://") && !text.contains(KEY_PREFIX) {
        return text;
    }
    let text = redact_passwords(&text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(KEY_PREFIX) {
        let (before, after) = rest.split_at(at + KEY_PREFIX.len());
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let later = after.trim_start_matches(is_of_key);
        out.push_str(before);
        if later.len() < after.len() {
            out.push_str(REDACTED);
        }
        rest = later;
    }
    out.push_str(rest);
    out
}

/// Redacts the passwords of all URLs in a text: the user info before the `@` of a host, and the values of
/// query parameters with secret names. A user name is kept if a password follows it.
pub fn redact_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let (url, later) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let tail = redact_user_info(url, &mut out);
        redact_query(tail, &mut out);
        rest = later;
    }
    out.push_str(rest);
    out
}

/// Redacts the password and the query secrets of a setting that should be a URL. The value may be malformed,
/// and parsers accept some malformed URLs (`http:/user:password@host`). So unless there clearly is a host
/// without user info, everything up to the last `@` is redacted, except for the scheme and a user name that
/// is followed by a password.
pub fn redact_url(url: &str) -> String {
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
            out.push_str(REDACTED);
            &rest[at..]
        }
        _ => rest,
    };
    redact_query(tail, &mut out);
    out
}

/// What follows the scheme. As lenient as parsers: `http:` may be followed by any number of slashes or
/// backslashes.
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

/// Whether this is a host with an optional port, and nothing else.
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

/// Writes the user info, redacted, and returns the rest.
fn redact_user_info<'u>(url: &'u str, out: &mut String) -> &'u str {
    let authority = url.find(['/', '?', '#', '\\']).map_or(url, |end| &url[..end]);
    // A `/` in the password ends the authority early; then the supposed port is not a number.
    let torn = !authority.contains('@') && !authority.is_empty() && !is_host(authority);
    let within = if torn { url } else { authority };
    let Some(at) = within.rfind('@') else { return url };
    if let Some((user, _)) = url[..at].split_once(':') {
        out.push_str(user);
        out.push(':');
    }
    out.push_str(REDACTED);
    &url[at..]
}

fn redact_query(url: &str, out: &mut String) {
    let Some((path, query)) = url.split_once('?') else { return out.push_str(url) };
    out.push_str(path);
    for (index, pair) in query.split('&').enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret_name(name) => {
                out.push_str(name);
                out.push('=');
                out.push_str(REDACTED);
            }
            _ => out.push_str(pair),
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAME_PARTS.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_redacted_and_the_rest_kept() {
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
            assert_eq!(redact_passwords(text), shown, "{text}");
        }
    }

    #[test]
    fn keys_are_redacted_wherever_they_occur() {
        for (text, shown) in [
            ("key psk_0a1b_AbC-d, then psk_2_3", "key psk_***, then psk_***"),
            ("send `Bearer psk_…` to http://u:hunter2@host", "send `Bearer psk_…` to http://u:***@host"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(redact_secrets(text.to_owned()), shown);
        }
    }

    #[test]
    fn malformed_url_setting_still_redacts_its_password() {
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
            assert_eq!(redact_url(url), shown, "{url}");
            assert_eq!(redact_passwords(shown), shown, "shown as it is in a longer text");
        }
    }
}
