//! The `proscenium` program: the command line over the library.

mod cli;
#[path = "../scenes/shipped.rs"]
mod shipped;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// What a request needs is made on one thread and let go of on another, which this allocator is made for.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
