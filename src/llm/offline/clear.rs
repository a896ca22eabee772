//! Which words of a request are left over.
