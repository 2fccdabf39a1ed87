//! What came of the evaluation of a window.

use crate::judge::coverage::Coverage;
use crate::judge::numbers::Numbers;
use crate::judge::verdict::{Undecided, Verdict};

/// See the module.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// `None` while undecided.
    pub(super) numbers: Option<Numbers>,
    pub(super) coverage: Option<Box<Coverage>>,
}

impl Judged {
    pub(super) fn undecided(why: Undecided) -> Judged {
        Judged {
            verdict: Verdict::Undecided(why),
            numbers: None,
            coverage: None,
        }
    }
}
