//! The sums of scores of a pane: packed, unpacked, or both.
//!
//! Windows keep sealed panes packed. A pane comes to them unpacked, for those who take it first
//! need its cells: the sums of other partitions are added to it, the detector looks at it, and the
//! slides and windows that it falls into take it up. It is packed once ([`ScoreSums::packed`]), and
//! its unpacked sums go when all are done ([`ScoreSums::drop_unpacked`]).
//!
//! The slide that a window gathers changes with each base pane. To unpack and pack it each time
//! took a third of all that is done with a pane of full cells, so it stays unpacked where there is
//! room, and is packed when it is over, or for a snapshot.
//!
//! Always: packed or not, they are the same sums, to the bit.

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
    /// From when they are first wanted.
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

    /// What its dispersion is measured by.
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

    /// Whether they are packed, be it beside the unpacked ones.
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

    /// The unpacked sums, of `grid`, to change them. Unpacks them, or copies those of clones.
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

    /// Unpacks sums of `grid`, to be read often, and packs them beside.
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

    /// Packs, and lets go of the unpacked sums.
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

    /// Whether it shares its packed sums with another, and so is the same.
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
