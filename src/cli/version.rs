//! The text of `--version`: enough for a bug report, and to know whether a state can be read.

use std::sync::LazyLock;

use crate::config::TLS_BUILT;
use crate::store::{checkpoint, format};

/// Version, commit if known to the build, features and formats.
static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("TRUELINE_COMMIT");
    let tls = if TLS_BUILT { "yes" } else { "no" };
    format!(
        "{}\ncommit: {}\ntls: {tls}\nstate: snapshots of format {}, checkpoints of format {}",
        env!("CARGO_PKG_VERSION"),
        commit.unwrap_or("unknown; TRUELINE_COMMIT was not set at the build"),
        format::VERSION,
        checkpoint::VERSION,
    )
});

/// The text of `--version`.
pub fn long() -> &'static str {
    &LONG
}
