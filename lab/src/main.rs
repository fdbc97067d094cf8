//! `assay`: what does one request of a running service cost, and why?

fn main() {}
