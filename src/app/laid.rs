//! What lanes lay out, on its way to who judges it: put into parcels here, taken out of them there.
//!
//! A [`Log`] belongs to a lane in a process that counts and does not judge. It keeps what the lane has laid out until the
//! parcel that carries it is safe in the topic, and then for a while, up to [`KEPT_BYTES`]: so who follows the topic
//! may miss parcels, because it was away while the broker compacted the topic, and still find every item. Where the broker takes no
//! parcels the log is cut at [`UNSENT_BYTES`]; who judges then takes the windows as they are, and says so.

use super::engine::{Engine, Plan, Poured};
use super::vectors::{PouredVector, shape};
use crate::collect::{Key, PaneDelta};
use crate::stats::axis::Grid;
use crate::store::laid::{Change, Item, Laid, Mark, Names};
use crate::window::{Correction, EmptySums, PackError, Packed, PaneState};
use std::collections::VecDeque;
use std::sync::Arc;

/// Items that are safe are kept as long as they are no more than this.
const KEPT_BYTES: usize = 64 << 10;

/// Most bytes of items of a lane that wait for the broker.
const UNSENT_BYTES: usize = 16 << 20;

/// See the module.
#[derive(Debug, Default)]
pub struct Log {
    origin: Option<Mark>,
    /// Number of the first item.
    from: u64,
    items: VecDeque<Item>,
    bytes: usize,
    /// Items before this one are safe in the topic.
    safe: u64,
}

impl Log {
    /// That of a lane that begins with this parcel.
    pub fn new(origin: Option<Mark>) -> Log {
        let from = origin.map_or(0, |o| o.upto);
        Log {
            origin,
            from,
            safe: from,
            ..Log::default()
        }
    }

    /// Takes what was laid out.
    pub fn take(&mut self, poured: Vec<Poured>) {
        for poured in &poured {
            let item = item_of(poured);
            self.bytes += item.bytes();
            self.items.push_back(item);
        }
        self.trim();
    }

    fn trim(&mut self) {
        while let Some(oldest) = self.items.front()
            && self.bytes
                > match self.from < self.safe {
                    true => KEPT_BYTES,
                    false => UNSENT_BYTES,
                }
        {
            self.bytes -= oldest.bytes();
            self.items.pop_front();
            self.from += 1;
        }
    }

    /// For a parcel of this engine.
    pub fn laid(&self, engine: &Engine) -> Laid {
        Laid {
            origin: self.origin,
            from: self.from,
            items: self.items.iter().cloned().collect(),
            waiting: engine.waiting(),
            dues_ms: engine.dues_ms(),
        }
    }

    /// The items before `upto` are safe in the topic.
    pub fn is_safe(&mut self, upto: u64) {
        self.safe = self.safe.max(upto);
        self.trim();
    }

    /// Heap bytes held, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn names(key: &Key) -> Names {
    [key.model(), key.version(), key.segment()].map(str::to_owned)
}

/// As it lies in a parcel.
fn item_of(poured: &Poured) -> Item {
    let packed = |p: &Packed| p.as_bytes().to_vec();
    match poured {
        Poured::Pane {
            key,
            newest_ms,
            delta,
            ..
        } => Item::Pane {
            names: names(key),
            newest_ms: *newest_ms,
            span_ms: (delta.start_ms, delta.end_ms),
            late: delta.late,
            views: delta.views.iter().map(packed).collect(),
            unlabelled: delta.unlabelled.clone(),
        },
        Poured::Correction { key, corrections } => {
            let change = |c: &Correction| Change {
                minus: packed(&Packed::new(&c.minus)),
                plus: packed(&Packed::new(&c.plus)),
                labelled: c.labelled.clone(),
            };
            Item::Correction {
                names: names(key),
                start_ms: corrections.first().map_or(i64::MIN, |c| c.start_ms),
                views: corrections.iter().map(change).collect(),
            }
        }
        Poured::Vector(v) => Item::Vector {
            names: [v.name.clone(), v.version.clone()],
            segmented: v.segmented,
            newest_ms: v.newest_ms,
            view: v.view.to_string(),
            pane: PaneState::from(&v.pane),
        },
        Poured::Late { key, late } => Item::Late {
            names: names(key),
            late: late.clone(),
        },
    }
}

/// What an item says to an engine with this plan; `None` where it is not of the plan.
pub fn poured_of(item: Item, plan: &Plan) -> Option<Poured> {
    let key = |names: &Names| Key::new(&names[0], &names[1], &names[2]);
    match item {
        Item::Pane {
            names,
            newest_ms,
            span_ms,
            late,
            views,
            unlabelled,
        } => {
            let views: Result<_, PackError> = views.iter().map(|b| Packed::from_bytes(b)).collect();
            Some(Poured::Pane {
                key: key(&names),
                model: plan.serves(&names[0])?,
                newest_ms,
                delta: PaneDelta {
                    start_ms: span_ms.0,
                    end_ms: span_ms.1,
                    late,
                    views: views.ok()?,
                    unlabelled,
                },
            })
        }
        Item::Correction {
            names,
            start_ms,
            views,
        } => {
            let grid = plan.serving(&names[0])?.grid;
            let change = |c: Change| correction(start_ms, c, grid);
            let corrections: Result<_, PackError> = views.into_iter().map(change).collect();
            Some(Poured::Correction {
                key: key(&names),
                corrections: corrections.ok()?,
            })
        }
        Item::Vector {
            names: [name, version],
            segmented,
            newest_ms,
            view,
            pane,
        } => {
            let view = view.parse().ok()?;
            let shape = shape(plan.serving(&name)?, view, plan.caps.vector_cells_max)?;
            Some(Poured::Vector(Box::new(PouredVector {
                name,
                version,
                segmented,
                newest_ms,
                view,
                pane: pane
                    .restore(&EmptySums::Vector(Arc::new(shape.blank()?)))
                    .ok()?,
            })))
        }
        Item::Late { names, late } => Some(Poured::Late {
            key: key(&names),
            late,
        }),
    }
}

fn correction(start_ms: i64, c: Change, grid: Grid) -> Result<Correction, PackError> {
    Ok(Correction {
        start_ms,
        minus: Packed::from_bytes(&c.minus)?.unpack(grid)?,
        plus: Packed::from_bytes(&c.plus)?.unpack(grid)?,
        labelled: c.labelled,
    })
}
