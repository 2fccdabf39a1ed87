//! Logs the parts of a snapshot or checkpoint that do not fit the configuration.

/// Parts of state that are named in the log.
const DROPPED_SHOWN: usize = 5;

/// Advice for the log: how to fill streams again that start empty.
pub const READ_AGAIN: &str = "`trueline run --from earliest` sets the state aside and reads again what the topics still hold";

/// Logs what of a snapshot or checkpoint was dropped: the first parts, and how many there are.
pub(super) fn report_dropped<'d>(
    of: &str,
    dropped: impl Iterator<Item = &'d String>,
    remedy: &str,
) {
    let dropped: Vec<&String> = dropped.collect();
    for what in dropped.iter().take(DROPPED_SHOWN) {
        tracing::warn!(%what, "part of the {of} dropped");
    }
    let (all, more) = (dropped.len(), dropped.len().saturating_sub(DROPPED_SHOWN));
    if all > 0 && (more > 0 || !remedy.is_empty()) {
        tracing::warn!(
            all,
            more,
            remedy,
            "parts of the {of} dropped; they start empty"
        );
    }
}
