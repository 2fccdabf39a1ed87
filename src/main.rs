//! The `trueline` binary.
fn main() {}
