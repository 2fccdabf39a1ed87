//! What passages of files and of topics through the engine have in common.

use crate::app::engine::Engine;
use crate::judge::Change;

/// Records between two ticks of the engine and of the progress.
pub const STRIDE: u64 = 4096;

/// Who is told how far a replay has come: what is done, and of how much.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// Takes what is left to judge at the end of the input. Where outcomes came apart, only what is mature.
pub fn conclude(engine: &mut Engine, apart: bool, told: &mut dyn FnMut(&Change)) {
    let changes = match apart {
        true => engine.finish_mature(),
        false => engine.finish(),
    };
    changes.iter().for_each(told);
}
