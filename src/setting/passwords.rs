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

/// Writes what stands before the host, and gives the rest.
fn hide_user<'u>(url: &'u str, out: &mut String) -> &'u str {
    let authority = url.find(['/', '?', '#', '\\']).map_or(url, |end| &url[..end]);
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port.trim_end_matches(']'));
    // A password with a `/` in it ends the host early, and what should be a port is none.
    let torn = !authority.contains('@') && port.bytes().any(|byte| !byte.is_ascii_hexdigit());
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
}
