//! What windows said when the watermark came to stand still, until it moves again.
//!
//! A stall withdraws every verdict, and its end gives them back: none has become older in event
//! time. Without this a window of a day would stay undecided until its next slide, hours after the
//! stall, and the alert of its stream would rest on the detector alone. A snapshot says what was
//! judged: that the watermark stands still is what one process sees.

use crate::alert::Alert;
use crate::judge::numbers::Numbers;
use crate::judge::report::Family;
use crate::judge::verdict::Verdict;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Withheld {
    pub(super) verdict: Verdict,
    pub(super) numbers: Option<Numbers>,
    pub(super) family: Option<Family>,
    pub(super) alert: Alert,
}
