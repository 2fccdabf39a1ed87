//! The sums of a window, from those of its panes.
//!
//! A window that slides loses its oldest pane and gains one. Its sums are integers, so the lost
//! pane is subtracted exactly, and of six panes only the lost one is unpacked. Changes are found by
//! comparing panes with those that were added: a pane that a late outcome corrected, or that took
//! the events of another partition, is a different pane. So the code that changes panes does not
//! need to know of these sums.
//!
//! The old cells and those of both panes are ascending, so one walk along all three makes the new
//! ones. Several panes, such as those of a window whose sums are not kept, are added up in an array
//! of all cells instead: one addition for each cell of a pane, however many panes there are.
//!
//! Both happen in buffers that each thread keeps ([`Buffers`]), because freeing and allocating
//! memory at each slide cost as much as the sums. Sums that are kept lie in memory of their own; a
//! total that is not kept is lent from the buffers until its thread makes the next.
//!
//! Distinct scores and the sample of repeats cannot be subtracted: a score that was dropped stays
//! dropped. They are few and come before the cells of a packed pane, so they are merged again at
//! each slide.

use super::pack_error::PackError;
use super::score_sums::ScoreSums;
use crate::stats::algebra::{Merge, Overflow, Retract};
use crate::stats::axis::Grid;
use crate::stats::sums::{Cell, LogSums, Sums};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Most bytes of buffers that a thread keeps: four times what a window of 4096 cells needs.
const BUFFERS_BYTES_MAX: usize = 8 << 20;

thread_local! {
    static BUFFERS: std::cell::Cell<Buffers> = std::cell::Cell::default();
}

/// Occupied cells, ascending.
type Listed = Vec<(u32, Cell)>;

/// What panes add up to, except the scores that are kept singly.
type Added<'a> = (&'a [(u32, Cell)], LogSums);

/// The sums of the panes of a window, kept from slide to slide.
///
/// Always: the total is the merge of the panes, to the bit. Cost: 56 bytes a cell, shared with the
/// total, with room for half as many cells again, at most as many; and the packed panes that were
/// added, mostly shared with the window. These sums are in no snapshot; a restored window makes
/// them again at its next slide.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningSums {
    /// The panes that were added.
    held: Vec<ScoreSums>,
    cells: Arc<Listed>,
    logs: LogSums,
}

impl RunningSums {
    /// The merge of these panes. It is kept if it takes at most `room` bytes and all panes are
    /// packed; otherwise keeping it would pack them. After an error the sums are unusable.
    pub(super) fn total(
        &mut self,
        panes: &[&ScoreSums],
        grid: Grid,
        room: usize,
    ) -> Result<Sums, PackError> {
        if let [pane] = panes
            && let Some(sums) = pane.unpacked()
        {
            *self = RunningSums::default();
            return Ok(Sums::clone(sums));
        }
        let mut buffers = BUFFERS.take();
        let (cells, logs) = self.slide(&mut buffers, panes, grid, room)?;
        // After an error the buffers are dropped: cells may be left in them.
        if buffers.bytes() <= BUFFERS_BYTES_MAX {
            BUFFERS.set(buffers);
        }
        let mut total = Sums::of_listed(grid, cells, logs)?;
        for pane in panes {
            match pane.unpacked() {
                Some(sums) => total.merge_scores(sums.distinct(), sums.repeats())?,
                None => {
                    let parts = pane.packed().parts(grid)?;
                    total.merge_scores(&parts.distinct, &parts.repeats)?;
                }
            }
        }
        Ok(total)
    }

    /// The cells and log sums of these panes, kept if there is room.
    fn slide(
        &mut self,
        buffers: &mut Buffers,
        panes: &[&ScoreSums],
        grid: Grid,
        room: usize,
    ) -> Result<(Arc<Listed>, LogSums), PackError> {
        let before = std::mem::take(self);
        let is_gone = |held: &&ScoreSums| !panes.iter().any(|pane| pane.is(held));
        let gone: Vec<&ScoreSums> = before.held.iter().filter(is_gone).collect();
        let is_new = |pane: &&ScoreSums| !before.held.iter().any(|held| pane.is(held));
        let new: Vec<&ScoreSums> = panes.iter().copied().filter(is_new).collect();
        let array = &mut buffers.array;
        let (minus, less) = array.sum(&gone, grid, &mut buffers.gone)?;
        let (plus, more) = array.sum(&new, grid, &mut buffers.new)?;
        let logs = before.logs.zip(&less, i128::checked_sub)?;
        let logs = logs.zip(&more, i128::checked_add)?;
        let cells = match before.cells.is_empty() && minus.is_empty() {
            true => plus,
            false => {
                walk(&before.cells, minus, plus, &mut buffers.sum)?;
                &buffers.sum[..]
            }
        };
        let room = match panes.iter().any(|pane| !pane.is_packed()) {
            true => 0,
            false => room.saturating_sub(bytes(0, panes.len())) / size_of::<(u32, Cell)>(),
        };
        let len = cells.len();
        if len > room {
            let lent = copied(std::mem::take(&mut buffers.lent), cells, len..=usize::MAX);
            buffers.lent = lent.clone();
            return Ok((lent, logs));
        }
        // Spare room, so that a window that fills is seldom moved.
        let most = room.min(grid.cells() as usize);
        let capacity = most.min(len + len / 2);
        *self = RunningSums {
            cells: copied(before.cells, cells, capacity..=most.min(2 * len)),
            held: panes
                .iter()
                .map(|pane| pane.packed().clone().into())
                .collect(),
            logs,
        };
        Ok((self.cells.clone(), logs))
    }

    /// Whether the last total was kept.
    pub(super) fn is_kept(&self) -> bool {
        !self.held.is_empty()
    }

    /// Heap bytes held, without the panes.
    pub(super) fn bytes(&self) -> usize {
        bytes(self.cells.capacity(), self.held.len())
    }
}

fn bytes(cells: usize, panes: usize) -> usize {
    cells * size_of::<(u32, Cell)>() + panes * size_of::<ScoreSums>()
}

/// Copies the cells into `place` if nobody else holds it and it has room for them, but for no more
/// than the upper bound; otherwise into a new list with room for the lower bound.
fn copied(place: Arc<Listed>, cells: &[(u32, Cell)], room: RangeInclusive<usize>) -> Arc<Listed> {
    let mut list = Arc::try_unwrap(place).unwrap_or_default();
    if !(cells.len()..=*room.end()).contains(&list.capacity()) {
        list = Vec::new();
        list.reserve_exact(*room.start());
    }
    list.clear();
    list.extend_from_slice(cells);
    Arc::new(list)
}

/// Sets `sum` to the old cells without those of `gone` and with those of `new`. All are ascending.
fn walk(
    old: &[(u32, Cell)],
    gone: &[(u32, Cell)],
    new: &[(u32, Cell)],
    sum: &mut Listed,
) -> Result<(), Overflow> {
    sum.clear();
    sum.reserve(old.len() + new.len());
    let (mut gone, mut new) = (gone.iter().peekable(), new.iter().peekable());
    for (index, cell) in old {
        while let Some(one) = new.next_if(|(new, _)| new < index) {
            sum.push(*one);
        }
        let mut cell = *cell;
        if let Some((_, less)) = gone.next_if(|(gone, _)| gone == index) {
            cell.retract(less)?;
        }
        if let Some((_, more)) = new.next_if(|(new, _)| new == index) {
            cell.merge(more)?;
        }
        if cell.n > 0 {
            sum.push((*index, cell));
        }
    }
    sum.extend(new);
    // Cells that were never there cannot be taken out.
    gone.next().map_or(Ok(()), |_| Err(Overflow))
}

/// What a thread reuses for each total.
#[derive(Debug, Default)]
struct Buffers {
    array: Array,
    gone: Listed,
    new: Listed,
    sum: Listed,
    /// Cells of the last total that was not kept.
    lent: Arc<Listed>,
}

impl Buffers {
    fn bytes(&self) -> usize {
        let lists = [&self.gone, &self.new, &self.sum, &*self.lent];
        let cells: usize = lists.iter().map(|list| list.capacity()).sum();
        bytes(cells, 0) + self.array.cells.capacity() * size_of::<Cell>()
    }
}

/// All cells of a grid; empty except while panes are added up.
#[derive(Debug, Default)]
struct Array {
    cells: Vec<Cell>,
    /// A bit for each cell.
    occupied: Vec<u64>,
}

impl Array {
    /// The sums of panes: cells and log sums. The cells are put into `list`, unless a pane has them
    /// listed.
    fn sum<'a>(
        &mut self,
        panes: &[&'a ScoreSums],
        grid: Grid,
        list: &'a mut Listed,
    ) -> Result<Added<'a>, PackError> {
        let mut logs = LogSums::default();
        list.clear();
        let (single, len) = (panes.len() == 1, grid.cells() as usize);
        if !single && self.cells.len() < len {
            self.cells.resize(len, Cell::default());
            self.occupied.resize(len.div_ceil(64), 0);
        }
        for pane in panes {
            if let Some(sums) = pane.unpacked() {
                logs = logs.zip(sums.logs(), i128::checked_add)?;
                match sums.listed() {
                    Some(cells) if single => return Ok((cells, logs)),
                    _ if single => sums.each_occupied(|index, cell| list.push((index, *cell))),
                    Some(cells) => cells
                        .iter()
                        .try_for_each(|(index, c)| self.add(*index, c))?,
                    None => sums
                        .occupied()
                        .try_for_each(|(index, c)| self.add(index, &c))?,
                }
                continue;
            }
            let mut parts = pane.packed().parts(grid)?;
            logs = logs.zip(&parts.logs, i128::checked_add)?;
            match single {
                true => parts.list(pane.n(), list)?,
                false => parts.each(pane.n(), |index, cell| self.add(index, cell))?,
            }
        }
        if !single {
            self.empty_into(list);
        }
        Ok((list, logs))
    }

    #[inline]
    fn add(&mut self, index: u32, cell: &Cell) -> Result<(), Overflow> {
        let word = self.occupied.get_mut(index as usize / 64);
        *word.ok_or(Overflow)? |= 1 << (index % 64);
        let ours = self.cells.get_mut(index as usize).ok_or(Overflow)?;
        ours.merge(cell)
    }

    fn empty_into(&mut self, list: &mut Listed) {
        for (word, occupied) in self.occupied.iter_mut().enumerate() {
            let mut left = std::mem::take(occupied);
            while left > 0 {
                let index = 64 * word + left.trailing_zeros() as usize;
                list.push((index as u32, std::mem::take(&mut self.cells[index])));
                left &= left - 1;
            }
        }
    }
}
