//! Layer 3: the results of the core as JSON, as text and as records.
//!
//! The core returns numbers. This module formats them in one way for programs and people.
//!
//! | file | shows |
//! |---|---|
//! | [`moment`] | a moment as text |
//! | [`evaluation`], [`text`] | an evaluation of scores, as JSON and as text |
//! | [`vectors`], [`kernel`] | evaluations of vectors, likewise |
//! | [`distances`], [`intervals`], [`offline`] | what `trueline evaluate` computes besides |
//! | [`detector`], [`comparison`], [`recalibration`] | the other outputs of a stream |
//! | [`holding`] | why an alert is open, and when it ends |
//! | [`record`] | a change of an alert that can be recomputed |
//! | [`table`] | reports as aligned lines |
//! | [`html`], [`diagram`], [`legend`], [`window`] | drawings, numbers and windows as HTML |
//! | [`page`] | a self-contained page |

pub mod comparison;
pub mod detector;
pub mod diagram;
pub mod distances;
pub mod estimators;
pub mod evaluation;
pub mod holding;
pub mod html;
pub mod intervals;
pub mod kernel;
pub mod ledger;
pub mod legend;
pub mod markdown;
pub mod moment;
pub mod offline;
pub mod page;
pub mod recalibration;
pub mod record;
pub mod stream;
pub mod table;
pub mod text;
pub mod vectors;
pub mod window;
