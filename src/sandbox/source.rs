//! The constructs that no program may contain, whatever it does.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};

/// The first use of `async`, `await` or `asyncio`: the word and its line. The order of calls would depend on more than the
/// program then, and it could not be executed again.
pub(super) fn asynchronous(source: &str) -> Option<(&'static str, u32)> {
    if !source.contains("async") && !source.contains("await") {
        return None;
    }
    let parsed = parse_unchecked(source, ParseOptions::from(Mode::Module));
    parsed.tokens().iter().find_map(|token| {
        let (kind, range) = token.as_tuple();
        let start = usize::from(range.start());
        let word = match kind {
            TokenKind::Async => "async",
            TokenKind::Await => "await",
            TokenKind::Name if source.get(start..usize::from(range.end())) == Some("asyncio") => "asyncio",
            _ => return None,
        };
        Some((word, line_at(source, start)))
    })
}

/// The line, from 1, of the byte at this place of a source.
pub(super) fn line_at(source: &str, at: usize) -> u32 {
    let lines = source.get(..at).unwrap_or_default().matches('\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX - 1) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_only_as_code() {
        assert_eq!(asynchronous("x = 1\nawait f()"), Some(("await", 2)));
        assert_eq!(asynchronous("async def f():\n    pass"), Some(("async", 1)));
        assert_eq!(asynchronous("\n\nimport asyncio"), Some(("asyncio", 3)));
        assert_eq!(asynchronous("x = 'await'  # async\ny = f'await {x} asyncio'\nasynchronous = 1"), None);
        assert_eq!(asynchronous("f'{await x}'"), Some(("await", 1)));
        assert_eq!(asynchronous("(((\nasync"), Some(("async", 2)));
    }
}
