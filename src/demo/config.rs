//! The configuration of the demo, a file like any other.
//!
//! Windows are short, so that verdicts come within seconds; they have as many events as a busy
//! service receives in minutes. The text explains its numbers in comments, because `--show-config`
//! prints it as a starting point for users.

use std::net::SocketAddr;
use std::path::Path;

/// Topic of the models with one score.
pub const SCORES: &str = "demo-scores";
/// Topic of the models with one probability per class.
pub const CLASSES: &str = "demo-classes";
/// Partitions of each topic; with four, each stays far below the capacity of the mock broker.
pub const PARTITIONS: u32 = 4;
/// Windows, shortest first, and their widths in milliseconds.
pub const WINDOWS: [(&str, i64); 2] = [("10s", 10_000), ("30s", 30_000)];

/// Width of the window with this name, in milliseconds.
pub fn width_ms(window: &str) -> i64 {
    let known = WINDOWS.iter().find(|(name, _)| *name == window);
    known.map_or(WINDOWS[0].1, |(_, width_ms)| *width_ms)
}

/// The text of the configuration.
pub fn text(brokers: &str, listen: SocketAddr, state: &Path) -> String {
    let classes = super::models::CLASSES
        .map(|class| format!("\"{class}\""))
        .join(", ");
    // A literal string needs no escapes; a directory may have backslashes.
    let state = state.display();
    format!(
        r#"version = 1

[kafka]
brokers = "{brokers}"
group = "trueline-demo"
statistics_interval = "1s"

# One topic for each shape of record.
[[source]]
name = "scores"
topics = ["{SCORES}"]
fields = {{ version = "version", time = "ts", score = "score", outcome = "outcome" }}

[[source]]
name = "classes"
topics = ["{CLASSES}"]
classes = [{classes}]
fields = {{ version = "version", time = "ts", probabilities = "probabilities", outcome = "outcome" }}

# The defaults of all models.
[[model]]
name = "*"
# Short, for the demo; a service would use ["5m", "1h", "24h"].
windows = [{{ width = "10s", slide = "2s" }}, {{ width = "30s", slide = "2s" }}]
lateness = "1s"

[model.test]
# Two windows of every model are tested every two seconds: at the usual 0.05 a calibrated model would
# be rejected every minute or so.
alpha = 0.001
# An error that matters: an l2-ECE of two percentage points.
tolerance = 0.02
min_events = 2000

# Two minutes of a demonstration are too short to wait for the detector alone.
[model.alert]
window_alerts = true
for = "4s"
keep_firing_for = "10s"
stale_after = "20s"

# One event in a hundred: cells equal in log-odds, and a tolerance that fits the size of the scores.
[[model]]
name = "card_fraud"
axis = "logit"
test = {{ tolerance = 0.002 }}

[[model]]
name = "animals"
views = ["top_label"]

[[model]]
name = "animals_tempered"
views = ["top_label"]

[http]
listen = "{listen}"

[state]
directory = '{state}'
interval = "10s"

[log]
# Firing alerts are logged as warnings, which would disturb the table.
level = "error"
"#
    )
}
