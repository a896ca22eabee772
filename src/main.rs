//! The `proscenium` program: the command line over the library.

mod cli;
#[path = "../scenes/shipped.rs"]
mod shipped;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
