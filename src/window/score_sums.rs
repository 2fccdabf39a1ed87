//! The sums of scores of a pane: packed, unpacked, or both.
//!
//! Windows keep sealed panes packed. A pane arrives unpacked, because its first users need its
//! cells: the sums of other partitions are added to it, the detector reads it, and the slides and
//! windows that it falls into add it. It is packed once ([`ScoreSums::packed`]), and its unpacked
//! sums are dropped when all are done ([`ScoreSums::drop_unpacked`]).
//!
//! The slide that a window gathers changes with each base pane. Unpacking and packing it each time
//! took a third of all the work on a pane of full cells. So it stays unpacked if there is room, and
//! is packed when it is over, or for a snapshot.
//!
//! Always: packed or unpacked, the sums are the same, to the bit.

use super::pack::Packed;
use super::pack_error::PackError;
use crate::stats::algebra::Merge;
use crate::stats::axis::Grid;
use crate::stats::overdispersion::PaneTotals;
use crate::stats::sums::Sums;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// See the module. Cloning shares the sums.
#[derive(Debug, Clone)]
pub struct ScoreSums(Form);

#[derive(Debug, Clone)]
enum Form {
    Packed(Packed),
    Unpacked(Arc<Unpacked>),
}

#[derive(Debug, Clone)]
struct Unpacked {
    sums: Sums,
    /// Set when packed sums are first wanted.
    packed: OnceLock<Packed>,
}

impl From<Packed> for ScoreSums {
    fn from(packed: Packed) -> ScoreSums {
        ScoreSums(Form::Packed(packed))
    }
}

impl From<Sums> for ScoreSums {
    fn from(sums: Sums) -> ScoreSums {
        let packed = OnceLock::new();
        ScoreSums(Form::Unpacked(Arc::new(Unpacked { sums, packed })))
    }
}

impl ScoreSums {
    /// Number of events.
    pub fn n(&self) -> u64 {
        match &self.0 {
            Form::Packed(packed) => packed.n(),
            Form::Unpacked(unpacked) => unpacked.sums.n(),
        }
    }

    /// The totals by which dispersion is measured.
    pub fn totals(&self) -> &PaneTotals {
        self.packed().totals()
    }

    /// The packed sums. Packs once, for all clones.
    pub fn packed(&self) -> &Packed {
        match &self.0 {
            Form::Packed(packed) => packed,
            Form::Unpacked(unpacked) => {
                let pack = || Packed::new(&unpacked.sums);
                unpacked.packed.get_or_init(pack)
            }
        }
    }

    fn packed_if_any(&self) -> Option<&Packed> {
        match &self.0 {
            Form::Packed(packed) => Some(packed),
            Form::Unpacked(unpacked) => unpacked.packed.get(),
        }
    }

    /// Whether they are packed, with or without the unpacked ones beside.
    pub(super) fn is_packed(&self) -> bool {
        self.packed_if_any().is_some()
    }

    /// The unpacked sums, if they are kept.
    pub fn unpacked(&self) -> Option<&Sums> {
        match &self.0 {
            Form::Packed(_) => None,
            Form::Unpacked(unpacked) => Some(&unpacked.sums),
        }
    }

    /// The unpacked sums, of `grid`, to change them. Unpacks them, or copies them if clones share
    /// them.
    pub fn unpacked_mut(&mut self, grid: Grid) -> Result<&mut Sums, PackError> {
        if let Form::Packed(packed) = &self.0 {
            *self = packed.unpack(grid)?.into();
        }
        match &mut self.0 {
            Form::Unpacked(unpacked) => {
                let unpacked = Arc::make_mut(unpacked);
                unpacked.packed = OnceLock::new();
                Ok(&mut unpacked.sums)
            }
            Form::Packed(_) => Err(PackError::Corrupt),
        }
    }

    /// Keeps sums of `grid` unpacked, to be read often, and packed as well.
    pub fn unpack_beside(&mut self, grid: Grid) -> Result<(), PackError> {
        match &mut self.0 {
            Form::Packed(packed) => {
                self.0 = Form::Unpacked(Arc::new(Unpacked {
                    sums: packed.unpack(grid)?,
                    packed: packed.clone().into(),
                }));
            }
            Form::Unpacked(unpacked) => {
                Arc::make_mut(unpacked).sums.list();
                self.packed();
            }
        }
        Ok(())
    }

    /// Packs, and drops the unpacked sums.
    pub fn drop_unpacked(&mut self) {
        if let Form::Unpacked(_) = &self.0 {
            self.0 = Form::Packed(self.packed().clone());
        }
    }

    /// Adds other sums. After an error these are unusable.
    pub fn merge(&mut self, other: &ScoreSums, grid: Grid) -> Result<(), PackError> {
        other.merge_into(self.unpacked_mut(grid)?)
    }

    /// Adds to `sums`, which must have the grid of these. After an error the sums are unusable.
    pub(super) fn merge_into(&self, sums: &mut Sums) -> Result<(), PackError> {
        match &self.0 {
            Form::Packed(packed) => packed.merge_into(sums),
            Form::Unpacked(ours) => Ok(sums.merge(&ours.sums)?),
        }
    }

    /// The sums, which must be of `grid`.
    pub fn unpack(&self, grid: Grid) -> Result<Cow<'_, Sums>, PackError> {
        match &self.0 {
            Form::Packed(packed) => packed.unpack(grid).map(Cow::Owned),
            Form::Unpacked(unpacked) => Ok(Cow::Borrowed(&unpacked.sums)),
        }
    }

    /// Whether it shares its packed sums with another, and so is equal.
    pub(super) fn is(&self, other: &ScoreSums) -> bool {
        let both = self.packed_if_any().zip(other.packed_if_any());
        both.is_some_and(|(ours, theirs)| ours.is(theirs))
    }

    /// Heap bytes held unpacked.
    pub(super) fn unpacked_bytes(&self) -> usize {
        self.unpacked().map_or(0, Sums::bytes)
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.packed_if_any().map_or(0, Packed::bytes) + self.unpacked_bytes()
    }
}

impl PartialEq for ScoreSums {
    fn eq(&self, other: &ScoreSums) -> bool {
        self.packed() == other.packed()
    }
}

impl Serialize for ScoreSums {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.packed().serialize(s)
    }
}

impl<'de> Deserialize<'de> for ScoreSums {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<ScoreSums, D::Error> {
        Packed::deserialize(d).map(ScoreSums::from)
    }
}
