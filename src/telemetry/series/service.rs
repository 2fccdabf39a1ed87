//! Series of the service itself: health, the HTTP server, the process.

use std::sync::atomic::Ordering;

use super::super::log;
use super::super::metrics::Id;
use super::super::published::Published;
use super::{Families, one_if};

/// Exports health, the HTTP server and the process.
pub(in crate::telemetry) fn service(published: &Published, families: &mut Families) {
    for (part, why) in published.parts() {
        families.put(Id::Ready, &[&part], one_if(why.is_none()));
    }
    for (name, silence) in published.silences() {
        families.put(Id::LoopSilence, &[&name], silence.as_secs_f64());
    }
    let http = &published.http;
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed) as f64;
    families.put(Id::HttpConnections, &[], load(&http.open));
    families.put(Id::HttpRefused, &[], load(&http.refused));
    for (class, counter) in ["2xx", "4xx", "5xx"].iter().zip(&http.responses) {
        families.put(Id::HttpResponses, &[class], load(counter));
    }
    families.put(Id::LogSuppressed, &[], log::suppressed() as f64);
    families.put(Id::BuildInfo, &[env!("CARGO_PKG_VERSION")], 1.0);
    families.put(Id::ProcessStart, &[], published.started_seconds());
    if let Some(bytes) = resident_bytes() {
        families.put(Id::ProcessMemory, &[], bytes as f64);
    }
}

/// Resident memory of this process, read from `/proc`; `None` on other systems.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}
