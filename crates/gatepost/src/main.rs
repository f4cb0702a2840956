//! The gatepost binary.
fn main() {}
