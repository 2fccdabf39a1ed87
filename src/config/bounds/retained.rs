//! Memory of predictions, outcomes and ids while they wait for each other.
//!
//! With separate outcomes, each of `pending_max` predictions takes [`PENDING_BYTES`], and as much
//! again for each further view of single scores. It also takes [`COORDINATE_BYTES`] for each of the
//! largest probabilities that its vector views need: k for `top_k:k`, all for `full`, the maximum
//! of several views. If `kernel` keeps them whole, one more than two thirds of all are added. Each
//! of the equally many waiting outcomes takes [`WAITING_BYTES`]. Changes since the last snapshot
//! wait for its journal in addition. If that exceeds `pending_memory`, predictions take
//! `pending_memory`, the memory of spilling itself, and two bytes for each spilled prediction. On
//! disk the latter take the measured worst case during a merge of tables.
//!
//! Without `revise`, each partition of a join keeps a sample of predictions that were given up: 0.4
//! MB with one view for the first 32, and twice as much for all further ones together.
//!
//! If records are counted once by their ids, each of `ids_max` ids takes [`ID_BYTES`].

use crate::collect::join::{GivenUp, JoinPlan, full_vector};
use crate::collect::seen_ids::ID_BYTES;
use crate::config::Config;
use crate::judge::ModelPlan;
use crate::stats::multiclass::ranked::depth;

/// A retained prediction with one view: a row, its score and its index entry, with room for growth.
pub const PENDING_BYTES: u64 = 80;
/// One of the largest probabilities of a retained prediction with its class, or one and a half
/// probabilities of a vector kept whole: 12 bytes, with room for growth, twice while the columns
/// are copied.
pub const COORDINATE_BYTES: u64 = 32;
/// A waiting outcome: in a hash table that may be half empty, and in a queue by time.
pub const WAITING_BYTES: u64 = 160;
/// Memory of spilling itself: batches in flight, cached blocks and filters, tables being merged.
const SPILLING_BYTES: u64 = 256 << 20;
/// Bits in memory for a spilled prediction: whether it still exists, and its filter entry.
const SPILLED_HERE_BITS: u64 = 16;
/// Bytes on disk of a spilled prediction with one view, while tables are merged.
const SPILLED_BYTES: u64 = 400;
/// Bytes on disk for each further view.
const SPILLED_VIEW_BYTES: u64 = 72;

/// Memory of all joins.
pub(super) fn pending_bytes(config: &Config) -> u64 {
    let held = |j: &JoinPlan| {
        let most = (j.pending_max as u64).saturating_mul(held_bytes(config));
        let room = j.pending_memory as u64;
        match most > room {
            true => {
                let bits = (j.pending_max as u64).saturating_mul(SPILLED_HERE_BITS);
                room.saturating_add(SPILLING_BYTES).saturating_add(bits / 8)
            }
            false => most,
        }
    };
    let joins = config.plan.joins.iter();
    let sampled = GivenUp::bytes_max(views(config));
    let all = joins.map(|j| {
        let waiting = (j.pending_max as u64).saturating_mul(WAITING_BYTES);
        let sampled = if j.revise { 0 } else { sampled };
        held(j).saturating_add(waiting).saturating_add(sampled)
    });
    all.fold(0, u64::saturating_add)
}

/// Memory of the ids of counted records.
pub(super) fn ids_bytes(config: &Config) -> u64 {
    match config.plan.ids.is_empty() {
        true => 0,
        false => (config.plan.caps.ids_max as u64).saturating_mul(ID_BYTES as u64),
    }
}

/// Disk space of all joins.
pub(super) fn spill_bytes(config: &Config) -> u64 {
    let spills = |j: &&JoinPlan| {
        let most = (j.pending_max as u64).saturating_mul(held_bytes(config));
        most > j.pending_memory as u64
    };
    let joins = config.plan.joins.iter().filter(spills);
    let entries = views(config) - 1 + coordinates(config);
    let each = SPILLED_BYTES + entries * SPILLED_VIEW_BYTES;
    let all = joins.map(|j| (j.pending_max as u64).saturating_mul(each));
    all.fold(0, u64::saturating_add)
}

/// Memory of one retained prediction.
fn held_bytes(config: &Config) -> u64 {
    views(config) * PENDING_BYTES + coordinates(config) * COORDINATE_BYTES
}

/// Most entries that vector views keep of a prediction.
fn coordinates(config: &Config) -> u64 {
    let views = |m: &ModelPlan| m.views.iter().filter_map(|v| v.cells()).collect::<Vec<_>>();
    let of = |m: &ModelPlan| {
        let whole = if m.samples() {
            full_vector::entries(m.classes.len())
        } else {
            0
        };
        (depth(views(m).into_iter(), m.classes.len()) + whole) as u64
    };
    config.plan.models.iter().map(of).max().unwrap_or(0)
}

/// Most views of single scores; a weight or a cluster counts as one.
fn views(config: &Config) -> u64 {
    let scalars = |m: &ModelPlan| m.views.iter().filter(|v| !v.is_vector()).count();
    let views = |m: &ModelPlan| scalars(m) as u64 + u64::from(!m.grid.is_plain());
    let views = config.plan.models.iter().map(views);
    views.max().unwrap_or(1).max(1)
}
