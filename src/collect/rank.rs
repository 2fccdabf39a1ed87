//! The rank of an event in the samples of kernel views.
//!
//! A sample keeps the events with the lowest ranks. A rank is a hash, under the configured seed, of
//! the event's id and time. An event without an id uses its place in the input instead; a record
//! with several rows adds the row. So the rank does not depend on the order in which partitions are
//! read, nor, with ids, on the partition. It does not depend on the prediction or the outcome.

use super::event::{Event, Origin};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// Which row of its record an event is.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows(Option<(Origin, u32)>);

impl Rows {
    /// Notes that the next event is one more row of the record at `origin`.
    pub fn next(&mut self, origin: Origin) {
        self.0 = Some((origin, self.of(origin).saturating_add(1)));
    }

    /// Row of the event at hand.
    pub fn of(&self, origin: Origin) -> u32 {
        let row = self.0.filter(|(of, _)| *of == origin);
        row.map_or(0, |(_, row)| row)
    }
}

/// The rank of an event, of row `row` of its record; see the module.
pub fn rank(seed: u64, origin: Origin, row: u32, event: &Event<'_>) -> u64 {
    let mut hash = SipHasher13::new_with_keys(seed, 0);
    hash.write_u32(row);
    match event.id {
        [] => {
            hash.write_u16(origin.source);
            hash.write_i32(origin.partition);
            hash.write_i64(origin.offset);
        }
        id => {
            hash.write_i64(event.time_ms);
            hash.write(id);
        }
    }
    hash.finish()
}
