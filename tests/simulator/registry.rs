//! The schema registry of the simulated processes: what it answers, how it fails, and which records
//! need it.
//!
//! In some fleets the records of the first topic are Avro behind the frame of a registry. The
//! client of the program runs down to the single request: each step of its thread begins when a
//! schema is due, and ends when the answer comes, in virtual time. The registry fails as a whole
//! for a while, and for some ids for ever. Records with such an id are rejected in the end, and no
//! other record is.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use trueline::app::engine_loop::EngineLoop;
use trueline::registry::{
    Connection, DOUBTFUL_FOR, FetchError, Fetches, Host, PAUSE_MAX, RegistryOptions,
};
use trueline::stats::rng::Rng;

use super::client::{Site, lock};
use super::clock::{self, wall_ms};
use super::directed::Circumstance;
use super::scenario::{BEGIN, CALM, Draw, Fault, Kind, Record, Scenario, UNTIL};

/// Its address.
const URL: &str = "http://registry";
/// Longest time of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// One of so many fleets reads through a registry.
const SHARE: usize = 5;
/// How long a record may hold its partition while the registry answers: until the next try, until
/// the doubt has lasted, until the try after that, and the requests for other ids before it.
const HOLDS: Duration = DOUBTFUL_FOR
    .saturating_add(PAUSE_MAX)
    .saturating_add(PAUSE_MAX)
    .saturating_add(Duration::from_secs(10));
/// The same of ids that the client has given up: it asks again, and takes any answer.
const HOLDS_AGAIN: Duration = Duration::from_secs(5);
/// The ids that [`many_ids`] sends.
const MANY: std::ops::Range<u32> = 100..112;
/// All that [`many_ids`] sends first was given up by then.
const GIVEN_UP: Duration = Duration::from_secs(110);
/// Within this it is published that records wait.
const PUBLISHED: Duration = Duration::from_secs(2);

/// How a registry fails as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody answers.
    Down,
    /// Nobody answers in time.
    Silent,
    /// Answers take seconds.
    Slow,
    /// It answers everything with this status, and with no error code of its own.
    Answers(u16),
    /// Something else answers, with 200.
    Foreign,
    /// It answers other requests, and none for schemas.
    Starting,
}

/// The schemas that can be used: one by itself, and one that refers to another.
const GOOD: [u32; 2] = [1, 2];
/// Ids that nothing can be read with, and that only they are to blame for.
const BAD: [(u32, Answer); 11] = [
    (11, Answer::Unknown),
    (12, Answer::Status(400)),
    (13, Answer::Status(404)),
    (14, Answer::Status(422)),
    (15, Answer::Status(403)),
    (16, Answer::Status(500)),
    (17, Answer::Refers("forbidden")),
    (18, Answer::Refers("broken")),
    (19, Answer::Foreign),
    (20, Answer::Unusable("THRIFT", r#""string""#)),
    (21, Answer::Unusable("AVRO", "no schema")),
];

/// How an id is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// With the registry's own code of an unknown schema.
    Unknown,
    Status(u16),
    /// With a schema that refers to this subject.
    Refers(&'static str),
    /// With what is not JSON.
    Foreign,
    /// With this type and text.
    Unusable(&'static str, &'static str),
}

/// Lets some fleets read through a registry.
pub fn draw(s: &mut Scenario) {
    let mut d = Draw(Rng::new(s.seed ^ 0x5C4E_3A00));
    if d.below(SHARE) == 0 {
        add(&mut d, s);
    }
}

/// Lets a fleet read through a registry that fails, and adds records with ids that are bad.
pub fn add(d: &mut Draw, s: &mut Scenario) {
    s.schemas = true;
    let mut at = d.seconds(13, 35);
    while at < CALM - Duration::from_secs(45) {
        let all = [
            Trouble::Down,
            Trouble::Silent,
            Trouble::Slow,
            Trouble::Answers(401),
            Trouble::Answers(403),
            Trouble::Answers(404),
            Trouble::Answers(429),
            Trouble::Answers(503),
            Trouble::Foreign,
        ];
        let (trouble, time) = (all[d.below(all.len())], d.seconds(2, 45));
        s.faults.push((at, Fault::Registry { trouble, time }));
        at += time;
        if d.below(2) == 0 {
            // Shorter than what is held against an id.
            let (trouble, time) = (Trouble::Starting, d.seconds(2, 15));
            s.faults.push((at, Fault::Registry { trouble, time }));
            at += time;
        }
        // It is asked again within the longest pause.
        at += PAUSE_MAX + d.seconds(1, 20);
    }
    for _ in 0..2 + d.below(6) {
        let (id, _) = BAD[d.below(BAD.len())];
        let (at, log) = (
            d.between(BEGIN, UNTIL),
            d.below(s.partitions as usize) as i32,
        );
        if s.away(log).iter().any(|away| away.contains(&at)) {
            continue;
        }
        s.records
            .push(unschemed(at, log, id, format!("of schema {id}")));
    }
    s.faults.sort_by_key(|(at, _)| *at);
    s.records.sort_by_key(|r| (r.at, r.log));
}

/// A record whose schema, of this id, cannot be had.
fn unschemed(at: Duration, log: i32, id: u32, text: String) -> Record {
    let time_ms = wall_ms(at);
    Record {
        at,
        log,
        time_ms,
        stamp_ms: time_ms,
        text,
        kind: Kind::Unschemed(id),
    }
}

/// Lets a fleet read through a registry that answers many ids badly, and sends them one after the
/// other, twice.
pub fn many_ids(d: &mut Draw, s: &mut Scenario) {
    s.schemas = true;
    let log = d.below(s.partitions as usize) as i32;
    let time = d.seconds(1, 5);
    s.faults
        .push((d.seconds(20, 100), Fault::Cut { host: 0, time }));
    let first = d.seconds(15, 25);
    // Longer after it than an answer is kept, and not so long that the client begins to doubt
    // again.
    for at in [first, first + d.seconds(112, 135)] {
        for (n, id) in (0u32..).zip(MANY) {
            let at = at + Duration::from_millis(10) * n;
            let text = format!("of schema {id} at {}", wall_ms(at));
            s.records.push(unschemed(at, log, id, text));
        }
    }
}

/// How long a record may hold its partition while the registry answers.
pub fn holds(s: &Scenario, now: Duration) -> Duration {
    match s.circumstance {
        Some(Circumstance::Ids) if now > GIVEN_UP => HOLDS_AGAIN,
        _ => HOLDS,
    }
}

/// The section of the configuration.
pub fn section() -> String {
    format!(
        "[registry]\nurl = \"{URL}\"\ntimeout = \"{}s\"",
        TIMEOUT.as_secs()
    )
}

/// The bytes of a record.
pub fn payload(s: &Scenario, r: &Record) -> Vec<u8> {
    let text = r.text.as_bytes();
    let framed = |id: u32| [&[0], &id.to_be_bytes()[..]].concat();
    if let Kind::Unschemed(id) = r.kind {
        return [framed(id), text.to_vec()].concat();
    }
    let json: Option<Value> = serde_json::from_slice(text).ok();
    let Some(json) = json.filter(|_| s.schemas && r.log < s.partitions) else {
        return text.to_vec();
    };
    let which = text.iter().map(|b| usize::from(*b)).sum::<usize>() % GOOD.len();
    let mut bytes = framed(GOOD[which]);
    let long = |n: i64, bytes: &mut Vec<u8>| {
        let mut rest = ((n << 1) ^ (n >> 63)) as u64;
        while rest > 0x7f {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    };
    if which == 1 {
        long(7, &mut bytes);
    }
    for name in ["id", "model"] {
        let text = json[name].as_str().expect("a text");
        long(text.len() as i64, &mut bytes);
        bytes.extend(text.as_bytes());
    }
    long(json["time_ms"].as_i64().expect("a time"), &mut bytes);
    bytes.extend(json["score"].as_f64().expect("a score").to_le_bytes());
    long(json["outcome"].as_i64().expect("an outcome"), &mut bytes);
    bytes
}

/// The registry.
pub struct Registry {
    draw: Draw,
    trouble: Option<(Trouble, Duration)>,
}

impl Registry {
    pub fn new(seed: u64) -> Registry {
        Registry {
            draw: Draw(Rng::new(seed ^ 0x5C4E_3A01)),
            trouble: None,
        }
    }

    /// It fails until then.
    pub fn trouble(&mut self, trouble: Trouble, until: Duration) {
        self.trouble = Some((trouble, until));
    }

    /// When it failed last.
    pub fn failed(&self) -> Duration {
        self.trouble.map_or(Duration::ZERO, |(_, until)| until)
    }

    fn now(&self) -> Option<Trouble> {
        let trouble = self.trouble.filter(|(_, until)| clock::now() < *until);
        trouble.map(|(trouble, _)| trouble)
    }

    /// How long an answer takes that is asked for now.
    fn takes(&mut self) -> Duration {
        match self.now() {
            Some(Trouble::Silent) => TIMEOUT,
            Some(Trouble::Slow) => self.draw.seconds(1, TIMEOUT.as_secs()),
            _ => (self.draw).between(Duration::from_millis(2), Duration::from_millis(200)),
        }
    }

    fn answer(&self, path: &str) -> Result<(u16, String), String> {
        let ok = |body: Value| Ok((200, body.to_string()));
        let status = |status: u16| {
            let body = json!({"error_code": status, "message": "no"});
            Ok((status, body.to_string()))
        };
        let foreign = || Ok((200, "<html>".to_owned()));
        match self.now() {
            Some(Trouble::Down) => return Err("connection refused".to_owned()),
            Some(Trouble::Silent) => return Err("timeout".to_owned()),
            Some(Trouble::Answers(code)) => return status(code),
            Some(Trouble::Foreign) => return foreign(),
            Some(Trouble::Starting) if path != "/schemas/types" => return status(500),
            _ => {}
        }
        let refers = |subject: &str, fields: &str| {
            let references = json!([{"name": "By", "subject": subject, "version": 3}]);
            ok(json!({"schema": schema(fields), "references": references}))
        };
        if path == "/schemas/types" {
            return ok(json!(["AVRO"]));
        }
        match path {
            "/subjects/by/versions/3" => ok(json!({"schema": BY_TYPE})),
            "/subjects/forbidden/versions/3" => status(403),
            "/subjects/broken/versions/3" => status(502),
            _ => {
                let id = path
                    .strip_prefix("/schemas/ids/")
                    .and_then(|id| id.parse().ok());
                let bad = BAD
                    .iter()
                    .find(|(bad, _)| Some(*bad) == id)
                    .map(|(_, how)| *how);
                match bad {
                    None if id == Some(GOOD[0]) => ok(json!({"schema": schema("")})),
                    None if id == Some(GOOD[1]) => refers("by", BY),
                    None if id.is_some_and(|id| MANY.contains(&id)) => status(500),
                    None => status(404),
                    Some(Answer::Unknown) => {
                        let body = json!({"error_code": 40403, "message": "Schema not found"});
                        Ok((404, body.to_string()))
                    }
                    Some(Answer::Status(code)) => status(code),
                    Some(Answer::Refers(subject)) => refers(subject, BY),
                    Some(Answer::Foreign) => foreign(),
                    Some(Answer::Unusable(kind, text)) => {
                        ok(json!({"schemaType": kind, "schema": text}))
                    }
                }
            }
        }
    }
}

/// The type that is referred to, and a field of it.
const BY_TYPE: &str = r#"{"type":"record","name":"By","fields":[{"name":"n","type":"long"}]}"#;
const BY: &str = r#"{"name":"by","type":"By"},"#;

/// The schema of events, with these fields before all others.
fn schema(fields: &str) -> String {
    format!(
        r#"{{"type":"record","name":"Event","fields":[{fields}{{"name":"id","type":"string"}},{{"name":"model","type":"string"}},{{"name":"time_ms","type":"long"}},{{"name":"score","type":"double"}},{{"name":"outcome","type":"long"}}]}}"#
    )
}

/// The connection of a process.
struct Connected(Arc<Mutex<Registry>>);

impl Connection for Connected {
    fn get(&self, url: &str) -> Result<(u16, String), String> {
        let path = url.strip_prefix(URL).expect("its address");
        let mut registry = lock(&self.0);
        let answer = registry.answer(path);
        // One request comes after the other, and meanwhile the registry may come back.
        clock::sleep((registry.draw).between(Duration::from_millis(2), Duration::from_millis(200)));
        answer
    }
}

/// The client of a process.
pub struct Fetching {
    fetches: Box<dyn Fetches>,
    /// When the answer comes.
    answered: Option<Duration>,
}

impl Host for Site {
    fn run(&self, fetches: Box<dyn Fetches>) -> io::Result<()> {
        *lock(&self.fetching) = Some(Fetching {
            fetches,
            answered: None,
        });
        Ok(())
    }

    fn connect(&self, _: &RegistryOptions) -> Result<Box<dyn Connection>, FetchError> {
        Ok(Box::new(Connected(Arc::clone(&self.registry))))
    }
}

impl Site {
    /// When the client of the registry has something to do next.
    pub fn fetches(&self, now: Duration) -> Option<Duration> {
        let mut fetching = lock(&self.fetching);
        let fetching = fetching.as_mut()?;
        clock::set(now, 0);
        let due = fetching.fetches.due_in()?;
        if !due.is_zero() {
            return Some(now + due);
        }
        let takes = || now + lock(&self.registry).takes();
        Some(*fetching.answered.get_or_insert_with(takes))
    }

    /// The client does what is due.
    pub fn fetch(&self) {
        let fetching = lock(&self.fetching).take();
        let Some(mut fetching) = fetching else {
            return;
        };
        fetching.answered = None;
        fetching.fetches.step();
        *lock(&self.fetching) = Some(fetching);
    }
}

/// Records at the heads of partitions that wait for their schemas.
#[derive(Default)]
pub struct Waits(BTreeMap<i32, Wait>);

struct Wait {
    offset: i64,
    since: Duration,
    /// How many waited when that was last looked at, and when.
    seen: (Duration, u64),
}

impl Waits {
    /// Records that wait count as lag, and none holds its partition for longer than `holds` where
    /// nothing else has been wrong since `from`. Answers whether any wait.
    pub fn check(
        &mut self,
        engine: &EngineLoop,
        (from, holds): (Duration, Duration),
        now: Duration,
    ) -> Result<bool, String> {
        let Some(consumer) = engine.consumers.first() else {
            return Ok(false);
        };
        let queue = &consumer.source.queue;
        if queue.is_empty() {
            self.0.clear();
            return Ok(false);
        }
        let assigned = consumer.consumer.assignment();
        self.0
            .retain(|n, _| assigned.iter().any(|p| p.partition == *n));
        let positions = engine.topology.positions();
        let position = |p: i32| {
            let mut all = positions.iter();
            let here = all.find(|o| (o.source, o.partition) == (0, p));
            here.map_or(0, |o| o.offset)
        };
        let facts = engine.published.facts();
        for p in assigned {
            let (number, waiting) = (p.partition, queue.records_of(p));
            let offset = position(number);
            if waiting == 0 {
                self.0.remove(&number);
                continue;
            }
            let new = Wait {
                offset,
                since: now,
                seen: (now, waiting),
            };
            let wait = self.0.entry(number).or_insert(new);
            if wait.offset != offset {
                (wait.offset, wait.since, wait.seen) = (offset, now, (now, waiting));
            }
            if now > wait.since.max(from) + holds {
                return Err(format!(
                    "the record at {offset} of partition {number} has held it since {:.1} s, and the registry answers",
                    wait.since.as_secs_f64()
                ));
            }
            let (at, least) = wait.seen;
            if now > at + PUBLISHED {
                wait.seen = (now, waiting);
                let mut all = facts.partitions.iter();
                let shown = all.find(|f| f.topic == super::world::TOPIC && f.partition == number);
                let lag = shown.and_then(|f| f.lag);
                if lag.is_some_and(|lag| lag < least as i64) {
                    return Err(format!(
                        "{least} records of partition {number} wait for schemas, and its lag is {lag:?}"
                    ));
                }
            }
        }
        Ok(true)
    }
}
