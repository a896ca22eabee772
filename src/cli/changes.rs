//! Changes between two texts, by lines, in the form of a unified diff without line numbers.

/// Lines that are shown around a change.
const CONTEXT_LINES: usize = 3;
/// Texts of more lines than this are not compared line by line.
const MAX_LINES: usize = 2_000;

/// Lines of both are marked with a blank, those of `before` alone with `-`, those of `after` alone with
/// `+`; unchanged lines further away are omitted and marked with `@@`.
pub fn of(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let lines =
        if old.len() > MAX_LINES || new.len() > MAX_LINES { apart(&old, &new) } else { compared(&old, &new) };
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, (mark, _))| *mark != ' ').map(|(at, _)| at).collect();
    let mut out = String::new();
    let mut left_out = false;
    let mut next = changed.iter().peekable();
    let mut last: Option<usize> = None;
    for (at, (mark, line)) in lines.iter().enumerate() {
        if next.peek() == Some(&&at) {
            last = next.next().copied();
        }
        let near = |change: usize| change.abs_diff(at) <= CONTEXT_LINES;
        if last.is_some_and(near) || next.peek().is_some_and(|change| near(**change)) {
            if left_out {
                out.push_str("@@\n");
            }
            left_out = false;
            out.push(*mark);
            out.push_str(line);
            out.push('\n');
        } else {
            left_out = true;
        }
    }
    out
}

type ChangeLine<'a> = (char, &'a str);

fn apart<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<ChangeLine<'a>> {
    old.iter().map(|line| ('-', *line)).chain(new.iter().map(|line| ('+', *line))).collect()
}

/// By the longest common sequence of lines.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<ChangeLine<'a>> {
    let width = new.len() + 1;
    // common[i * width + j]: how many lines old[i..] and new[j..] have in common, in order.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let mut lines = Vec::with_capacity(old.len().max(new.len()));
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines.extend(apart(&old[i..], &new[j..]));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_lines_around_them() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
        let after = "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\nk\nl\n";
        assert_eq!(of(before, after), "@@\n b\n c\n d\n-e\n+E\n f\n g\n h\n i\n j\n k\n+l\n");
        let after = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nK\n";
        assert_eq!(of(before, after), "@@\n h\n i\n j\n-k\n+K\n");
    }

    #[test]
    fn equal_texts_have_no_changes_and_missing_ones_are_all_change() {
        assert_eq!(of("a\nb\n", "a\nb\n"), "");
        assert_eq!(of("a\n", ""), "-a\n");
        assert_eq!(of("", "a\n"), "+a\n");
    }

    #[test]
    fn long_texts_are_shown_apart() {
        let long = "x\n".repeat(MAX_LINES + 1);
        assert_eq!(of(&long, "y\n").lines().count(), MAX_LINES + 2);
    }
}
