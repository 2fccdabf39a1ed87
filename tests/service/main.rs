//! The program as its users run it: every verb, HTTP, reload, and a broker in the test's process.

mod backtest;
mod daemon;
mod demo;
mod estimators;
mod evaluate;
mod events;
mod http;
mod json;
mod operations;
mod output;
mod pages;
mod recalibration;
mod replay;
mod report;
mod reproduce;
mod run;
mod sinks;
#[path = "../support/mod.rs"]
mod support;
