//! The `proscenium` program: the command line over the library.

mod cli;

use std::process::ExitCode;

use mimalloc::MiMalloc;
use proscenium::shipped;

/// Requests allocate on one thread and free on another, which this allocator handles well.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
