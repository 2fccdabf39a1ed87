//! The configuration of a process, and its start.

use std::path::Path;
use std::sync::Arc;

use trueline::app::engine_loop::EngineLoop;
use trueline::app::{App, Setup};
use trueline::config::Config;
use trueline::config::value::Outside;

use super::{JUDGE_PARTITIONS, LATENESS_MS, STALLED_MS, TOPIC};
use crate::client::Site;
use crate::directed::Circumstance;
use crate::scenario::{EXPIRY, Fleet, Scenario};
use crate::{alerts, registry};

/// The configuration of a process.
pub(super) fn config(folder: &Path, role: &str, s: &Scenario, schemas: bool) -> Config {
    let directory = folder.display();
    let (start, interval) = (s.start.setting(), s.interval_s);
    // A judge hears of events with the next checkpoint.
    let stalled_ms = match s.fleet {
        Fleet::Judged | Fleet::Shared => STALLED_MS + 2000 * interval as i64,
        Fleet::Single | Fleet::Moving => STALLED_MS,
    };
    let state = match role {
        "" => String::new(),
        role => format!("topic = \"state\"\nverdicts = \"{role}\"\nmissing_after = \"2m\""),
    };
    let state = match s.fleet {
        Fleet::Shared => format!("{state}\njudge_partitions = {JUDGE_PARTITIONS}"),
        _ => state,
    };
    let wide = match s.circumstance {
        Some(Circumstance::Stalled) => r#", { width = "1h", slide = "2m" }"#,
        _ => "",
    };
    let model = |name: &str| {
        format!(
            "[[model]]\nname = \"{name}\"\nwindows = [\"30s\", \"1m\"{wide}]\nlateness = \"{LATENESS_MS}ms\"\n[model.test]\nmin_events = 30\n{}",
            alerts::of_model(name)
        )
    };
    let instance = if s.named { r#"instance = "i""# } else { "" };
    let expiry = s
        .expires
        .then(|| format!("stream_expiry = \"{}s\"", EXPIRY.as_secs()));
    let expiry = expiry.unwrap_or_default();
    let (registry, format) = match schemas {
        true => (registry::section(), "avro"),
        false => (String::new(), "json"),
    };
    let joined = s
        .joined
        .map_or(String::new(), |joined| joined.source(&start));
    let text = format!(
        r#"
version = 1
[kafka]
brokers = "localhost:9"
group = "g"
{instance}
statistics_interval = "1s"
open_transaction_max = "60s"
[kafka.options]
"session.timeout.ms" = "6000"
[state]
directory = "{directory}"
interval = "{interval}s"
records_max = 0
{state}
[limits]
threads = 1
future_max = "3m"
stalled_after = "{stalled_ms}ms"
{expiry}
{registry}
[[source]]
topics = ["{TOPIC}"]
start = "{start}"
format = "{format}"
[source.fields]
id = "id"
model = "model"
time = "time_ms"
score = "score"
outcome = "outcome"
{joined}
{}{}{}{}{}
"#,
        model("a"),
        model("b"),
        model("c"),
        model("d"),
        alerts::sinks(s.seed)
    );
    let outside = Outside {
        variable: &|_| None,
        directory: ".".into(),
    };
    Config::parse(&text, "simulation", &outside).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

pub(super) fn start(
    site: &Site,
    role: &str,
    folder: &Path,
    s: &Scenario,
) -> Result<EngineLoop, String> {
    let mut setup = Setup::of(config(folder, role, s, s.schemas));
    setup.brokers = Arc::new(site.clone());
    setup.workers = Arc::new(site.clone());
    setup.sinks = Arc::new(site.clone());
    setup.registry = Arc::new(site.clone());
    let engine = App::engine_loop(setup).map_err(|e| e.to_string());
    if engine.is_err() {
        site.forget(false);
    }
    engine
}
