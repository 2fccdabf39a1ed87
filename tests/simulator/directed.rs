//! Directed fleets: each is about one circumstance that matters to a fix, and that faults left to
//! chance seldom bring about.
//!
//! Faults are few. Records come as in every other fleet, and besides them those that the
//! circumstance needs. All of it is drawn by a generator of its own, so that the seeds of other
//! fleets stay what they are.

use std::ops::Range;
use std::time::Duration;

use trueline::stats::rng::Rng;

use super::clock::wall_ms;
use super::outcomes::Joined;
use super::records::produce_all;
use super::registry;
use super::scenario::{BEGIN, Draw, EXPIRY, Fault, Fleet, Kind, Record, Scenario, UNTIL};
use super::start::Start;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circumstance {
    /// All partitions of one process are with another program for longer than the process holds
    /// them, while one of them is far behind the others.
    Taken,
    /// The process is out of contact while a part of its partitions is with another one.
    Apart,
    /// Another process takes the `instance` while this one takes it back.
    Fenced,
    /// A partition has a backlog that begins with records that are not counted, of a clock ahead.
    Backlog,
    /// The brokers are away for longer than streams are kept.
    Outage,
    /// Workers are frozen or cut off beyond their sessions, and go on before they know.
    Frozen,
    /// Nobody claims a partition of which its owner has nothing to write.
    Claimed,
    /// A partition with predictions that wait has no records any more.
    Silent,
    /// A worker dies while a transaction hides records of a partition that was read to its end.
    Hidden,
    /// Records need schemas, and the registry fails.
    Schemas,
    /// Many ids without a schema come one after the other, and again when they have been given up.
    Ids,
    /// The watermark stands still between two slides of a window.
    Stalled,
    /// The first events of a stream come too late to count.
    Late,
    /// A worker gets a partition back that has nothing new.
    Resting,
    /// The judge's clock is behind while a worker is slow.
    Stepped,
}

impl Circumstance {
    pub const ALL: [Circumstance; 15] = [
        Circumstance::Taken,
        Circumstance::Apart,
        Circumstance::Fenced,
        Circumstance::Backlog,
        Circumstance::Outage,
        Circumstance::Frozen,
        Circumstance::Claimed,
        Circumstance::Silent,
        Circumstance::Hidden,
        Circumstance::Schemas,
        Circumstance::Ids,
        Circumstance::Stalled,
        Circumstance::Late,
        Circumstance::Resting,
        Circumstance::Stepped,
    ];

    /// As `TRUELINE_FLEET` has it.
    pub fn name(self) -> &'static str {
        match self {
            Circumstance::Taken => "taken",
            Circumstance::Apart => "apart",
            Circumstance::Fenced => "fenced",
            Circumstance::Backlog => "backlog",
            Circumstance::Outage => "outage",
            Circumstance::Frozen => "frozen",
            Circumstance::Claimed => "claimed",
            Circumstance::Silent => "silent",
            Circumstance::Hidden => "hidden",
            Circumstance::Schemas => "schemas",
            Circumstance::Ids => "ids",
            Circumstance::Stalled => "stalled",
            Circumstance::Late => "late",
            Circumstance::Resting => "resting",
            Circumstance::Stepped => "stepped",
        }
    }

    pub fn of(name: &str) -> Option<Circumstance> {
        Circumstance::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// The scenario of a seed.
pub fn draw(seed: u64, circumstance: Circumstance) -> Scenario {
    let of = circumstance as u64 + 1;
    let mut d = Draw(Rng::new(seed ^ (0xD1EC_0000 + (of << 40))));
    let mut more = Draw(Rng::new(seed ^ (0xD1EC_5EED + (of << 40))));
    let fleet = match circumstance {
        Circumstance::Frozen | Circumstance::Hidden | Circumstance::Stepped => Fleet::Judged,
        Circumstance::Claimed | Circumstance::Resting => [Fleet::Judged, Fleet::Shared][d.below(2)],
        Circumstance::Silent => Fleet::Moving,
        Circumstance::Schemas => [Fleet::Single, Fleet::Moving, Fleet::Judged][d.below(3)],
        _ => Fleet::Single,
    };
    let hosts = match fleet {
        Fleet::Single => 1,
        Fleet::Moving => 2,
        Fleet::Judged => 3,
        Fleet::Shared => 4,
    };
    let silent = circumstance == Circumstance::Silent;
    let joined = silent.then(|| Joined {
        negative: true,
        ..Joined::draw(&mut more)
    });
    let seldom = matches!(
        circumstance,
        Circumstance::Frozen | Circumstance::Hidden | Circumstance::Resting
    );
    let interval_s = if seldom {
        [10, 30][d.below(2)]
    } else {
        [1, 3, 10][d.below(3)]
    };
    let mut s = Scenario {
        seed,
        fleet,
        circumstance: Some(circumstance),
        hosts,
        partitions: 2 + d.below(3) as i32,
        joined,
        expires: false,
        schemas: false,
        named: circumstance == Circumstance::Fenced,
        start: Start::Earliest,
        interval_s,
        records: Vec::new(),
        faults: Vec::new(),
        until: UNTIL,
        planted: false,
    };
    produce_all(&mut d, &mut more, &mut s);
    let draw = match circumstance {
        Circumstance::Taken => taken,
        Circumstance::Apart => apart,
        Circumstance::Fenced => fenced,
        Circumstance::Backlog => backlog,
        Circumstance::Outage => outage,
        Circumstance::Frozen => frozen,
        Circumstance::Claimed => claimed,
        Circumstance::Silent => silent_partition,
        Circumstance::Hidden => hidden,
        Circumstance::Schemas => schemas,
        Circumstance::Ids => registry::many_ids,
        Circumstance::Stalled => stalled,
        Circumstance::Late => late,
        Circumstance::Resting => resting,
        Circumstance::Stepped => stepped,
    };
    draw(&mut d, &mut s);
    s.faults.sort_by_key(|(at, _)| *at);
    s.records.sort_by_key(|r| (r.at, r.log));
    s
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

/// Good records of a partition, so many a second.
fn good(d: &mut Draw, s: &mut Scenario, log: i32, rate: f64, during: Range<Duration>) {
    let mut at = during.start;
    loop {
        at += seconds(-(1.0 - d.0.uniform()).ln() / rate);
        if !during.contains(&at) {
            return;
        }
        let time_ms = wall_ms(at) - (3000.0 * d.0.uniform()) as i64;
        let score = (100.0 * d.0.uniform()).round() / 100.0;
        let (model, outcome) = (d.below(2), d.0.uniform() < score);
        let (name, y) = (["a", "b"][model], u8::from(outcome));
        let id = format!("{log}-also-{}", at.as_nanos());
        let text = format!(
            r#"{{"id":"{id}","model":"{name}","time_ms":{time_ms},"score":{score},"outcome":{y}}}"#
        );
        s.records.push(Record {
            at,
            log,
            time_ms,
            stamp_ms: wall_ms(at),
            text,
            kind: Kind::Good { model, outcome },
        });
    }
}

fn all_good(d: &mut Draw, s: &mut Scenario, rate: f64, during: Range<Duration>) {
    for log in 0..s.partitions {
        good(d, s, log, rate, during.clone());
    }
}

/// A transaction hides what comes into a partition before and while another program has everything.
fn taken(d: &mut Draw, s: &mut Scenario) {
    for (from, to) in [(26, 32), (80, 84)] {
        let at = d.seconds(from, to);
        let before = d.seconds(13, 20);
        // Any but the last one.
        let log = d.below(s.partitions as usize - 1) as i32;
        let time = d.seconds(31, 42);
        let hides = Fault::Transaction {
            log,
            time: before + d.seconds(5, 30),
            commits: true,
        };
        s.faults.push((at - before.min(at - BEGIN), hides));
        s.faults.push((at, Fault::Taken { time }));
        all_good(d, s, 2.0, at.saturating_sub(before)..at + time);
    }
}

/// Another process of the group has a part of the partitions for less than they are held, and the
/// time out of contact is longer.
fn apart(d: &mut Draw, s: &mut Scenario) {
    for (from, to) in [(20, 30), (72, 78)] {
        let at = d.seconds(from, to);
        let other = Fault::Stranger {
            earlier: false,
            time: d.seconds(12, 18),
        };
        let time = d.seconds(26, 36);
        let out = if d.below(3) == 0 {
            Fault::Freeze { host: 0, time }
        } else {
            Fault::Cut { host: 0, time }
        };
        s.faults.push((at, other));
        s.faults.push((at + d.seconds(3, 8), out));
        all_good(d, s, 2.0, at - seconds(5.0)..at + time + seconds(15.0));
    }
}

fn fenced(d: &mut Draw, s: &mut Scenario) {
    let twin = |d: &mut Draw| Fault::Twin {
        earlier: false,
        time: d.seconds(26, 30),
    };
    for (from, to) in [(20, 26), (74, 80)] {
        let at = d.seconds(from, to);
        // The grace period is 16 s, and it asks every two seconds.
        let again = at + d.between(seconds(16.0), seconds(20.0));
        s.faults.push((at, twin(d)));
        s.faults.push((again, twin(d)));
    }
}

fn backlog(d: &mut Draw, s: &mut Scenario) {
    for (from, to) in [(25, 32), (62, 68), (100, 105)] {
        let (at, time) = (d.seconds(from, to), d.seconds(17, 28));
        let log = d.below(s.partitions as usize) as i32;
        let commits = true;
        s.faults
            .push((at, Fault::Transaction { log, time, commits }));
        let ahead_ms = [3_600_000, 10 * 365 * 86_400_000][d.below(2)];
        let first = at..at + Duration::from_millis(60);
        s.records.retain(|r| r.log != log || !first.contains(&r.at));
        // Three are enough to be believed, where each says another time.
        for n in 1..4 {
            let at = at + Duration::from_millis(10 * n);
            s.records.push(Record {
                at,
                log,
                time_ms: wall_ms(at),
                stamp_ms: wall_ms(at) + ahead_ms,
                text: "not json".to_owned(),
                kind: Kind::Broken,
            });
        }
        all_good(d, s, 2.0, at + seconds(0.1)..at + time);
    }
}

fn outage(d: &mut Draw, s: &mut Scenario) {
    s.expires = true;
    let (at, time) = (d.seconds(20, 45), EXPIRY + d.seconds(2, 15));
    s.faults.push((at, Fault::Cut { host: 0, time }));
    all_good(d, s, 1.0, BEGIN..UNTIL);
}

fn frozen(d: &mut Draw, s: &mut Scenario) {
    let mut at = d.seconds(22, 30);
    while at < Duration::from_secs(108) {
        let (host, time) = (1 + d.below(2), d.seconds(7, 15));
        let out = if d.below(2) == 0 {
            Fault::Freeze { host, time }
        } else {
            Fault::Cut { host, time }
        };
        s.faults.push((at, out));
        at += time + d.seconds(5, 20);
    }
    all_good(d, s, 1.0, BEGIN..Duration::from_secs(150));
}

fn claimed(d: &mut Draw, s: &mut Scenario) {
    for log in 0..1 + d.below(s.partitions as usize) as i32 {
        let from = d.seconds(20, 30);
        let at = from + Duration::from_secs(2 * s.interval_s) + d.seconds(8, 20);
        let to = at + Duration::from_secs(s.interval_s + 25);
        s.records
            .retain(|r| r.log != log || !(from..to).contains(&r.at));
        s.faults.push((at, Fault::Stray { log }));
    }
}

fn silent_partition(d: &mut Draw, s: &mut Scenario) {
    for _ in 0..3 {
        let (at, log) = (
            d.seconds(20, 100),
            d.below(3 * s.partitions as usize) as i32,
        );
        let (host, down) = (d.below(s.hosts), d.seconds(0, 12));
        let fault = if d.below(2) == 0 {
            Fault::Kill { host, down }
        } else {
            Fault::Move { log }
        };
        s.faults.push((at, fault));
    }
    // By then one process has all partitions.
    let (log, until) = (d.below(s.partitions as usize) as i32, d.seconds(155, 172));
    let logs = [s.partitions + log, 2 * s.partitions + log];
    s.records.retain(|r| r.at < until || !logs.contains(&r.log));
}

fn hidden(d: &mut Draw, s: &mut Scenario) {
    let log = d.below(s.partitions as usize) as i32;
    let (at, host) = (d.seconds(46, 60), 1 + d.below(2));
    let dies = at + d.seconds(3, 18);
    let down = d.seconds(20, 40);
    let time = (dies + d.seconds(14, 40) - at).min(Duration::from_secs(55));
    let quiet = Duration::from_secs(14)..at + time + Duration::from_secs(2);
    s.records.retain(|r| r.log != log || !quiet.contains(&r.at));
    let commits = true;
    s.faults
        .push((at, Fault::Transaction { log, time, commits }));
    s.faults.push((dies, Fault::Kill { host, down }));
    good(d, s, log, 4.0, at + seconds(0.01)..at + seconds(12.0));
    for other in (0..s.partitions).filter(|other| *other != log) {
        good(d, s, other, 2.0, BEGIN..Duration::from_secs(130));
    }
}

fn schemas(d: &mut Draw, s: &mut Scenario) {
    registry::add(d, s);
    for _ in 0..3 {
        let (host, down) = (d.below(s.hosts), d.seconds(0, 12));
        s.faults
            .push((d.seconds(20, 100), Fault::Kill { host, down }));
    }
}

/// Windows of an hour slide two minutes after the begin, and not again before the end: what a
/// transaction without an end withdraws in between comes back when it ends.
fn stalled(d: &mut Draw, s: &mut Scenario) {
    let log = d.below(s.partitions as usize) as i32;
    let hang = Fault::Hang {
        log,
        time: d.seconds(20, 35),
    };
    s.faults.push((d.seconds(134, 142), hang));
    all_good(d, s, 1.0, BEGIN..UNTIL);
}

/// More events of model `b` come late than in time, and first.
fn late(d: &mut Draw, s: &mut Scenario) {
    s.records.retain(|r| !r.text.contains(r#""model":"b""#));
    let (host, down) = (0, d.seconds(0, 12));
    s.faults
        .push((d.seconds(20, 120), Fault::Kill { host, down }));
    let end = UNTIL - d.seconds(9, 12);
    for n in 0..100 + d.below(50) {
        let (at, log) = (
            d.between(end - seconds(4.0), end),
            d.below(s.partitions as usize) as i32,
        );
        let time_ms = wall_ms(at) - 100_000 - 1000 * d.below(100) as i64;
        s.records.push(Record {
            at,
            log,
            time_ms,
            stamp_ms: wall_ms(at),
            text: format!(
                r#"{{"id":"late-{n}","model":"b","time_ms":{time_ms},"score":0.5,"outcome":1}}"#
            ),
            kind: Kind::Doubtful,
        });
    }
    all_good(
        d,
        s,
        20.0 / f64::from(s.partitions),
        end + seconds(1.0)..UNTIL,
    );
}

/// A worker is frozen, writes when it goes on what it no longer may, and gets its partition back
/// before the one that had it meanwhile has written.
fn resting(d: &mut Draw, s: &mut Scenario) {
    let log = d.below(s.partitions as usize) as i32;
    let first = if s.fleet == Fleet::Shared { 2 } else { 1 };
    let host = first + d.below(2);
    let (at, time) = (d.seconds(30, 70), d.seconds(7, 14));
    let other = Fault::Kill {
        host: 2 * first + 1 - host,
        down: d.seconds(8, 20),
    };
    s.faults.push((at, Fault::Freeze { host, time }));
    s.faults.push((at + time + d.seconds(0, 6), other));
    let quiet = at..Duration::from_secs(150);
    s.records.retain(|r| r.log != log || !quiet.contains(&r.at));
    good(d, s, log, 4.0, at.saturating_sub(seconds(8.0))..at);
}

/// Workers stand still for less than the judge waits for them, while its clock is behind by more
/// than that. Records come so fast that no checkpoint has them all when it is read.
fn stepped(d: &mut Draw, s: &mut Scenario) {
    for (from, to) in [(20, 26), (80, 86)] {
        let (at, time) = (d.seconds(from, to), d.seconds(35, 45));
        let behind = Fault::Clock {
            host: 0,
            ahead_ms: [-3_600_000, -10 * 365 * 86_400_000][d.below(2)],
            time,
        };
        let slow = Fault::Freeze {
            host: 1 + d.below(2),
            time: d.seconds(8, 15),
        };
        let slow_at = at + d.seconds(4, 12);
        s.faults.push((at, behind));
        s.faults.push((slow_at, slow));
        all_good(d, s, 30.0, at..slow_at + seconds(5.0));
    }
    all_good(d, s, 2.0, BEGIN..Duration::from_secs(140));
}
