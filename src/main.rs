//! The `proscenium` program: the command line over the library.

mod cli;
#[path = "../scenes/shipped.rs"]
mod shipped;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Requests allocate on one thread and free on another, which this allocator handles well.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
