//! Which writes are made and which are asked about.
