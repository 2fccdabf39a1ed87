//! What the producers of a fleet write: records of two models in busy and quiet times, and others
//! that are late, ahead, broken, twice, or of a model that nobody watches.

use std::time::Duration;

use super::clock::wall_ms;
use super::outcomes;
use super::scenario::{BEGIN, Draw, Fault, Kind, Record, Scenario, UNTIL};
use super::start::Start;

/// The records of all partitions; `more` draws those of the second source.
pub fn produce_all(d: &mut Draw, more: &mut Draw, s: &mut Scenario) {
    for partition in 0..s.partitions {
        produce(d, s, partition);
        // What comes last closes the windows before it, wherever they are kept.
        let at = UNTIL + Duration::from_secs(8) + Duration::from_millis(partition as u64);
        let time_ms = wall_ms(at);
        s.records.push(Record {
            at,
            log: partition,
            time_ms,
            stamp_ms: time_ms,
            text: format!(r#"{{"id":"last-{partition}","model":"c","time_ms":{time_ms},"score":0.5,"outcome":1}}"#),
            kind: Kind::Doubtful,
        });
        if s.joined.is_some() {
            outcomes::produce(more, s, partition);
        }
    }
}

/// How a partition is used for some time.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Busy,
    Quiet,
    Uncounted,
}

fn produce(d: &mut Draw, s: &mut Scenario, partition: i32) {
    if s.start != Start::Earliest {
        for n in 0..d.below(Start::OLD) {
            let at = Duration::from_millis(n as u64);
            let time_ms = Start::old_ms(n);
            let text = format!(
                r#"{{"id":"old-{partition}-{n}","model":"a","time_ms":{time_ms},"score":0.9,"outcome":0}}"#
            );
            let kind = Kind::Doubtful;
            s.records.push(Record {
                at,
                log: partition,
                time_ms,
                stamp_ms: time_ms,
                text,
                kind,
            });
        }
    }
    let away = s.away(partition);
    let (mut at, mut phase, mut next) = (BEGIN, Phase::Busy, BEGIN);
    let rate = 1.0 + 4.0 * d.0.uniform();
    let ahead = |f: &Fault| matches!(f, Fault::Clock { ahead_ms, .. } if *ahead_ms > 86_400_000);
    let years_ahead = s.faults.iter().any(|(_, f)| ahead(f));
    let (mut number, mut after_future) = (0, false);
    while at < s.until {
        if at >= next {
            phase = [Phase::Busy, Phase::Busy, Phase::Quiet, Phase::Uncounted][d.below(4)];
            next = at + d.seconds(5, 30);
            if at >= s.until - Duration::from_secs(15) {
                phase = Phase::Busy;
            }
        }
        at += Duration::from_secs_f64(-(1.0 - d.0.uniform()).ln() / rate);
        let reached = !away.iter().any(|away| away.contains(&at));
        if phase == Phase::Quiet || !reached || at >= s.until {
            continue;
        }
        number += 1;
        let mut r = record(d, partition, number, at, phase);
        if r.kind == Kind::Future && years_ahead && (number <= 3 || after_future) {
            // A clock of a host and several records in a row that are wrong by the same ten years
            // are right.
            r.stamp_ms = wall_ms(at);
        }
        after_future = r.kind == Kind::Future;
        let again = d.below(30) == 0 && matches!(r.kind, Kind::Good { .. });
        let later = at + d.seconds(0, 2);
        let reached = !away.iter().any(|away| away.contains(&later));
        if again && reached && later < s.until {
            s.records.push(Record {
                at: later,
                stamp_ms: wall_ms(later),
                ..r.clone()
            });
        }
        s.records.push(r);
    }
}

fn record(d: &mut Draw, partition: i32, number: u32, at: Duration, phase: Phase) -> Record {
    let now_ms = wall_ms(at);
    let time_ms = now_ms - (3000.0 * d.0.uniform()) as i64;
    let score = (100.0 * d.0.uniform()).round() / 100.0;
    let outcome = d.0.uniform() < score;
    let id = format!("{partition}-{number}");
    let write = |model: &str, time_ms: i64| {
        let y = u8::from(outcome);
        format!(
            r#"{{"id":"{id}","model":"{model}","time_ms":{time_ms},"score":{score},"outcome":{y}}}"#
        )
    };
    let years = 10 * 365 * 86_400_000;
    let at_of = |kind, time_ms: i64, stamp_ms: i64, text: String| Record {
        at,
        log: partition,
        time_ms,
        stamp_ms,
        text,
        kind,
    };
    let draw = d.below(60);
    if phase == Phase::Uncounted {
        return match draw % 2 {
            0 => at_of(Kind::Unwatched, time_ms, now_ms, write("other", time_ms)),
            _ => at_of(Kind::Broken, time_ms, now_ms, "{\"model\":".to_owned()),
        };
    }
    match draw {
        0 => at_of(Kind::Unwatched, time_ms, now_ms, write("other", time_ms)),
        1 => at_of(Kind::Broken, time_ms, now_ms, "not json".to_owned()),
        2 => {
            let late_ms = now_ms - (600_000.0 * d.0.uniform()) as i64;
            at_of(Kind::Doubtful, late_ms, now_ms, write("c", late_ms))
        }
        3 => {
            let ahead_ms = now_ms + (50_000.0 * d.0.uniform()) as i64;
            at_of(Kind::Doubtful, ahead_ms, now_ms, write("c", ahead_ms))
        }
        4 => {
            let ahead_ms = now_ms + years;
            let stamp_ms = if d.below(2) == 0 { ahead_ms } else { now_ms };
            at_of(Kind::Future, ahead_ms, stamp_ms, write("c", ahead_ms))
        }
        _ => {
            let model = d.below(2);
            let text = write(["a", "b"][model], time_ms);
            at_of(Kind::Good { model, outcome }, time_ms, now_ms, text)
        }
    }
}
