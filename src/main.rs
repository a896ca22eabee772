//! Proscenium on the command line.
fn main() {}
