//! A second source: predictions whose outcomes come in a topic of their own, early, late, twice or
//! never.
//!
//! An outcome is *on time* if its own event time is at most [`MATURITY_MS`] after the pane of its
//! prediction, whenever it is read. The producer stays clear of that moment, so that panes need not
//! be known here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::wall_ms;
use super::scenario::{BEGIN, Draw, Kind, Record, Scenario, UNTIL};

/// Time after which outcomes do not come any more.
pub const MATURITY_MS: i64 = 20_000;
/// Longest time of an outcome on time, and shortest of a late one.
const ON_TIME_S: f64 = 15.0;
const LATE_S: f64 = 28.0;
/// Predictions so long before the end have no late outcomes.
const LAST_LATE: Duration = Duration::from_secs(65);

/// How outcomes are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// An outcome after maturity corrects windows.
    pub revise: bool,
    /// Without an outcome it did not happen.
    pub negative: bool,
    /// Of two outcomes the last counts.
    pub last: bool,
}

impl Joined {
    pub fn draw(d: &mut Draw) -> Joined {
        Joined {
            revise: d.below(2) == 0,
            negative: d.below(2) == 0,
            last: d.below(2) == 0,
        }
    }

    /// The section of the configuration.
    pub fn source(&self, start: &str) -> String {
        let missing = if self.negative { "negative" } else { "drop" };
        let repeated = if self.last { "last" } else { "first" };
        format!(
            r#"
[[source]]
name = "predictions"
topics = ["predictions"]
start = "{start}"
model = "d"
[source.fields]
id = "id"
time = "time_ms"
score = "score"
[source.outcomes]
topics = ["outcomes"]
maturity = "{MATURITY_MS}ms"
id = "id"
time = "time_ms"
outcome = "outcome"
on_missing = "{missing}"
repeated = "{repeated}"
revise = {}
"#,
            self.revise
        )
    }
}

/// Predictions into a partition, and their outcomes into the one beside it.
pub fn produce(d: &mut Draw, s: &mut Scenario, partition: i32) {
    let logs = [s.partitions + partition, 2 * s.partitions + partition];
    let away = logs.map(|log| s.away(log));
    let how = s.joined.expect("it is joined");
    let rate = 0.5 + 1.5 * d.0.uniform();
    let (mut at, mut number) = (BEGIN, partition as u32 * 100_000);
    loop {
        at += Duration::from_secs_f64(-(1.0 - d.0.uniform()).ln() / rate);
        if at >= UNTIL {
            break;
        }
        number += 1;
        let time_ms = wall_ms(at) - (3000.0 * d.0.uniform()) as i64;
        let score = (100.0 * d.0.uniform()).round() / 100.0;
        let positive = d.0.uniform() < score;
        let text = format!(r#"{{"id":"{number}","time_ms":{time_ms},"score":{score}}}"#);
        let mut add = |side: usize, at: Duration, time_ms, text, kind| {
            if at < UNTIL && !away[side].iter().any(|away| away.contains(&at)) {
                s.records.push(Record {
                    at,
                    log: logs[side],
                    time_ms,
                    stamp_ms: wall_ms(at),
                    text,
                    kind,
                });
            }
        };
        let kind = Kind::Prediction(number);
        add(0, at, time_ms, text.clone(), kind);
        if d.below(30) == 0 {
            add(0, at + d.seconds(0, 2), time_ms, text, kind);
        }
        let mut outcome = |d: &mut Draw, after_s: f64, positive: bool| {
            let of_ms = time_ms + (1000.0 * after_s) as i64;
            let sent_ms = of_ms + (3000.0 * d.0.uniform()) as i64;
            let at = Duration::from_millis((sent_ms - wall_ms(Duration::ZERO)) as u64);
            // What is there before that is not read where reading begins at the end.
            let at = at.max(BEGIN);
            let y = u8::from(positive);
            let text = format!(r#"{{"id":"{number}","time_ms":{of_ms},"outcome":{y}}}"#);
            add(1, at, of_ms, text, Kind::Outcome(number, positive));
        };
        let on_time = ON_TIME_S * d.0.uniform();
        let (late, other) = (LATE_S + 20.0 * d.0.uniform(), d.below(2) == 0);
        match d.below(20) {
            0 | 1 => {}
            // A correction shows at the next slide, and there are few more at the end.
            2 | 3 if at < UNTIL - LAST_LATE => outcome(d, late, positive),
            2 | 3 => {}
            4 => {
                outcome(d, on_time, positive);
                outcome(d, on_time + 2.0, other);
            }
            // Open: of the outcomes that wait for a prediction the last alone is kept, also where
            // that is late for it and the one before was not.
            5 if at < UNTIL - LAST_LATE && !how.last => {
                outcome(d, on_time, positive);
                outcome(d, late, other);
            }
            _ => outcome(d, on_time, positive),
        }
    }
    // What comes last closes the windows before it.
    let at = UNTIL + Duration::from_secs(8) + Duration::from_millis(partition as u64);
    let time_ms = wall_ms(at);
    s.records.push(Record {
        at,
        log: logs[0],
        time_ms,
        stamp_ms: time_ms,
        text: format!(r#"{{"id":"last-{partition}","time_ms":{time_ms},"score":0.5}}"#),
        kind: Kind::Prediction(u32::MAX - partition as u32),
    });
}

/// Time and outcome of the predictions that count, from records in the order of their event times.
pub fn counted(how: Joined, records: impl Iterator<Item = (Kind, i64)>) -> Vec<(i64, bool)> {
    let mut predictions: BTreeMap<u32, i64> = BTreeMap::new();
    let mut outcomes: BTreeMap<u32, Vec<(i64, bool)>> = BTreeMap::new();
    for (kind, time_ms) in records {
        match kind {
            Kind::Prediction(number) => {
                predictions.insert(number, time_ms);
            }
            Kind::Outcome(number, y) => outcomes.entry(number).or_default().push((time_ms, y)),
            _ => {}
        }
    }
    let counted = predictions.into_iter().filter_map(|(number, time_ms)| {
        let mut all = outcomes.remove(&number).unwrap_or_default();
        let late_ms = time_ms + (1000.0 * LATE_S) as i64;
        all.retain(|(at_ms, _)| how.revise || *at_ms < late_ms);
        all.sort_by_key(|(at_ms, _)| *at_ms);
        let one = if how.last { all.last() } else { all.first() };
        let y = one.map(|(_, y)| *y).or(how.negative.then_some(false));
        Some((time_ms, y?))
    });
    counted.collect()
}
