//! What a lane has laid out since its parcel before, in a parcel: base panes that it sealed, corrections of sealed ones.
//!
//! A parcel holds the windows of a partition, which are sums over slides: enough to go on from, not enough for
//! somebody else to judge every slide between two parcels. So where verdicts are given by another process, a
//! parcel also carries, in order, what was sealed and corrected since the one before. The items of a partition are
//! numbered from its beginning on; a parcel says with which number its own begin. Who has read up to a number goes
//! on from there, and sees where something is missing.
//!
//! A partition that was taken over goes on with the numbers of the parcel that the taker found ([`Laid::origin`]):
//! what the one before had laid out behind that parcel is laid out again by the taker, who reads the same records again.

use crate::collect::LateVector;
use crate::window::{PaneState, Unlabelled};
use serde::{Deserialize, Serialize};

/// How much of a partition was laid out, as one claimant of it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Epoch of the claimant.
    pub epoch: i64,
    /// Number of the item that comes next.
    pub upto: u64,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Laid {
    /// The parcel that the claimant began with; `None` where it began without one, or with one that had no items.
    pub origin: Option<Mark>,
    /// Number of the first item.
    pub from: u64,
    /// Items, in order.
    pub items: Vec<Item>,
    /// Predictions that wait for outcomes, by slot of their subject.
    pub waiting: Vec<(u32, u64)>,
    /// When the oldest of them are mature, by model of the snapshot.
    pub dues_ms: Vec<Option<i64>>,
}

/// Names of a subject: model, version, segment.
pub type Names = [String; 3];

/// One thing that was laid out. Sums are packed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Item {
    /// A sealed pane.
    Pane {
        /// Whose.
        names: Names,
        /// Newest event time of the subject.
        newest_ms: i64,
        /// Begin and end.
        span_ms: (i64, i64),
        /// Events that came too late since the one before.
        late: u64,
        /// Sums, by view.
        views: Vec<Vec<u8>>,
        /// Predictions whose outcome never came, by view.
        unlabelled: Vec<Unlabelled>,
    },
    /// A correction of a pane that was sealed before.
    Correction {
        /// Whose.
        names: Names,
        /// Begin of the pane.
        start_ms: i64,
        /// What changes, by view.
        views: Vec<Change>,
    },
    /// A sealed pane of a vector view.
    Vector {
        /// Model and version.
        names: [String; 2],
        /// Whether its events have segments.
        segmented: bool,
        /// Newest event time.
        newest_ms: i64,
        /// The view, printed.
        view: String,
        /// Its events.
        pane: PaneState,
    },
    /// A late outcome, for vector views.
    Late {
        /// Whose.
        names: Names,
        /// What changes.
        late: LateVector,
    },
}

/// What changes in the sums of one view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Sums that are taken out.
    pub minus: Vec<u8>,
    /// Sums that are put in.
    pub plus: Vec<u8>,
    /// Scores whose outcome has come, and whether one had been implied.
    pub labelled: Vec<(f64, bool)>,
}

impl Item {
    /// Name of the model.
    pub fn model(&self) -> &str {
        match self {
            Item::Pane { names, .. }
            | Item::Correction { names, .. }
            | Item::Late { names, .. } => &names[0],
            Item::Vector { names, .. } => &names[0],
        }
    }
}

impl Laid {
    /// Number of the item that comes next.
    pub fn upto(&self) -> u64 {
        self.from + self.items.len() as u64
    }

    /// How many of its items somebody has already who has read up to `read`; `None` where some between are missing. `epoch`
    /// is that of the parcel. Who has read nothing misses nothing of what is told from the beginning.
    pub fn known(&self, epoch: i64, read: Option<Mark>) -> Option<usize> {
        let upto = match read {
            None => (self.origin.is_none() && self.from == 0).then_some(0)?,
            Some(read) if read.epoch == epoch || Some(read) == self.origin => read.upto,
            Some(_) => return None,
        };
        let known = upto.checked_sub(self.from)?;
        (known <= self.items.len() as u64).then_some(known as usize)
    }
}

impl Item {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let all = |parts: &[Vec<u8>]| parts.iter().map(Vec::len).sum::<usize>();
        let held = match self {
            Item::Pane { views, .. } => all(views),
            Item::Correction { views, .. } => {
                let one = |c: &Change| c.minus.len() + c.plus.len() + 9 * c.labelled.len();
                views.iter().map(one).sum()
            }
            Item::Vector { pane, .. } => pane.bytes(),
            Item::Late { late, .. } => late.bytes(),
        };
        held + 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(origin: Option<Mark>, from: u64, n: usize) -> Laid {
        let item = Item::Correction {
            names: Default::default(),
            start_ms: 0,
            views: Vec::new(),
        };
        Laid {
            origin,
            from,
            items: vec![item; n],
            ..Laid::default()
        }
    }

    fn mark(epoch: i64, upto: u64) -> Option<Mark> {
        Some(Mark { epoch, upto })
    }

    #[test]
    fn who_has_read_up_to_an_item_goes_on_from_there_or_learns_that_some_are_missing() {
        let own = laid(None, 10, 5);
        for (read, known) in [(10, Some(0)), (12, Some(2)), (15, Some(5))] {
            assert_eq!(own.known(7, mark(7, read)), known);
        }
        // Items are gone that were never read; or it is an older parcel than what was read.
        assert_eq!(own.known(7, mark(7, 9)), None);
        assert_eq!(own.known(7, mark(7, 16)), None);
        // From another claimant on only where the taker has begun with just that.
        assert_eq!(own.known(7, mark(6, 12)), None);
        let taken = laid(mark(6, 12), 12, 3);
        assert_eq!(taken.known(7, mark(6, 12)), Some(0));
        assert_eq!(taken.known(7, mark(6, 13)), None);
        assert_eq!(taken.known(7, mark(5, 12)), None);
        // Nothing was read: all must be there.
        assert_eq!(laid(None, 0, 4).known(7, None), Some(0));
        assert_eq!(own.known(7, None), None);
        assert_eq!(taken.known(7, None), None);
    }
}
