//! The text of a response in the character set that it names.

use std::borrow::Cow;

/// What windows-1252 has in place of the control characters of Latin-1, from 0x80 on; what it leaves open stays itself.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The character set that a `Content-Type` names, in lower case.
pub(super) fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_lowercase())
    })
}

/// `bytes` in UTF-8, without a byte order mark, as they are if no other character set is named. `None` for one that is not
/// known. Latin-1 is read as windows-1252, as browsers do, since servers say one and send the other.
pub(super) fn in_utf8<'a>(bytes: &'a [u8], charset: Option<&str>) -> Option<Cow<'a, [u8]>> {
    match charset.unwrap_or_default() {
        "" | "utf-8" | "utf8" | "us-ascii" | "ascii" => {
            Some(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).into())
        }
        "iso-8859-1" | "iso8859-1" | "latin1" | "latin-1" | "windows-1252" | "cp1252" => {
            Some(bytes.iter().map(|byte| one_byte(*byte)).collect::<String>().into_bytes().into())
        }
        _ => None,
    }
}

fn one_byte(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|place| WINDOWS_1252.get(usize::from(place)));
    special.copied().unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_the_character_set_that_it_names() {
        assert_eq!(
            charset("text/plain; format=flowed; Charset=\"ISO-8859-1\"").as_deref(),
            Some("iso-8859-1")
        );
        assert_eq!(charset("application/json"), None);
        let read = |bytes: &[u8], name| Some(String::from_utf8_lossy(&in_utf8(bytes, name)?).into_owned());
        assert_eq!(read(b"\xef\xbb\xbf{}", None).as_deref(), Some("{}"));
        assert_eq!(read("Città".as_bytes(), Some("utf-8")).as_deref(), Some("Città"));
        assert_eq!(read(b"Citt\xe0: 5 \x80", Some("iso-8859-1")).as_deref(), Some("Città: 5 €"));
        assert_eq!(read(b"C\0i\0", Some("utf-16")), None);
    }
}
