//! The command line of a benchmark, and the end of its process.

use std::process::ExitCode;

use crate::{Failure, fail};

/// Reads the arguments. `option` reads one, whose value the function that it is given returns, and says whether it knows it.
/// Returns whether there is something to do: not after `--help`.
///
/// # Errors
/// An unknown option, and those of `option`.
pub fn read(
    arguments: &[String],
    help: &str,
    mut option: impl FnMut(&str, &mut dyn FnMut() -> Result<String, Failure>) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        match name.as_str() {
            // cargo passes this to every benchmark.
            "--bench" => continue,
            "--help" => {
                println!("{help}");
                return Ok(false);
            }
            _ => {}
        }
        let mut value = || arguments.next().cloned().ok_or_else(|| fail(format!("{name} needs a value")));
        if !option(name, &mut value)? {
            return Err(fail(format!("unknown argument {name}\n{help}")));
        }
    }
    Ok(true)
}

/// The end of the process, which says why a measurement failed.
pub fn end(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
