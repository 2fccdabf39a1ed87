//! The last verdicts of the windows while the watermark is stalled, until it moves again.
//!
//! A stall withdraws every verdict, and its end restores them: none has become older in event time.
//! Otherwise a window of a day would stay undecided until its next slide, hours after the stall,
//! and the alert of its stream would depend on the detector alone. A snapshot stores the judged
//! verdicts and not the stall: only one process sees the stall.

use crate::alert::Alert;
use crate::judge::report::Family;
use crate::judge::verdict::{Numbers, Verdict};

#[derive(Debug, Clone)]
pub(super) struct Withheld {
    pub(super) verdict: Verdict,
    pub(super) numbers: Option<Numbers>,
    pub(super) family: Option<Family>,
    pub(super) alert: Alert,
}
