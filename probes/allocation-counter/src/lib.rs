//! Counts heap allocations of any dynamically linked program: load it with `LD_PRELOAD`.
