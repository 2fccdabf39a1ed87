//! The `trueline` binary: an allocator, and the command line of [`trueline::cli`].
//!
//! The allocator is named here and not in the library, since a library must not choose one for those
//! who link it. librdkafka frees on one thread what it allocated on another; mimalloc (which, by its
//! feature `override`, also serves the C side) was measured to need 25 % less CPU for that whenever the
//! consumer is slower than the broker.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    trueline::cli::main()
}
