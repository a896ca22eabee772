//! How commands are shown that users can copy: with the options of every command that this process was called with.

use std::path::Path;
use std::sync::OnceLock;

use super::args::Global;

/// The program's name and those options; set once, when the command line was read.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// Keeps the options for [`command`]. A second call changes nothing.
pub fn remember(global: &Global) {
    let _ = PROGRAM.set(program(global));
}

/// The command `rest` of this program, as a user can repeat it in the same place.
pub fn command(rest: &str) -> String {
    format!("{} {rest}", PROGRAM.get().map_or("proscenium", String::as_str))
}

fn program(global: &Global) -> String {
    let mut program = "proscenium".to_owned();
    for (option, value) in
        [("--config", &global.config), ("--scenes", &global.scenes), ("--data-dir", &global.data_dir)]
    {
        if let Some(value) = value {
            program.push_str(&format!(" {option} {}", quoted(value)));
        }
    }
    program
}

/// A path as a word of a shell.
pub fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:,+@%".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path;
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_commands_repeat_the_global_options() {
        assert_eq!(program(&Global::default()), "proscenium");
        let global = Global {
            data_dir: Some("a b's".into()),
            config: Some("/etc/p.toml".into()),
            ..Global::default()
        };
        assert_eq!(program(&global), r"proscenium --config /etc/p.toml --data-dir 'a b'\''s'");
    }
}
