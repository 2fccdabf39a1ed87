//! The seed of what a judge resamples.

use super::StreamId;

/// The seed of a window's resampling: FNV-1a over the names, the end of the window and the
/// configured seed; the same for a rerun, another for each window.
pub fn seed(id: &StreamId, window: &str, end_ms: i64, base: u64) -> u64 {
    let names = format!("{id}\n{window}");
    let bytes = names.bytes().chain(end_ms.to_le_bytes());
    bytes
        .chain(base.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        })
}
