//! What happens in one simulation: all of it follows from a seed, and can be made smaller.

use std::ops::Range;
use std::time::Duration;

use trueline::stats::rng::Rng;

use super::alerts;
use super::directed::Circumstance;
use super::outcomes::Joined;
use super::records::produce_all;
use super::registry;
use super::sinks::Trouble;
use super::start::Start;

/// How the processes are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fleet {
    /// One process with snapshots in its directory.
    Single,
    /// Two or three processes among which partitions move.
    Moving,
    /// Two workers and a judge.
    Judged,
    /// Two workers, and two judges that share the models.
    Shared,
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// It counts in the model of this number, unless it came before.
    Good { model: usize, outcome: bool },
    /// Its time is not to be trusted; it counts somewhere, or not, in a model of its own.
    Doubtful,
    /// Its clock is ten years ahead.
    Future,
    /// A prediction of model `d`, whose outcome comes apart from it; its number.
    Prediction(u32),
    /// The outcome of the prediction of this number.
    Outcome(u32, bool),
    /// Of a model that nobody watches.
    Unwatched,
    /// Not JSON.
    Broken,
    /// Its schema, of this number, cannot be had.
    Unschemed(u32),
}

/// A record of a producer.
#[derive(Debug, Clone)]
pub struct Record {
    pub at: Duration,
    /// See [`Scenario::place`].
    pub log: i32,
    /// Its event time and its timestamp.
    pub time_ms: i64,
    pub stamp_ms: i64,
    pub text: String,
    pub kind: Kind,
}

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// The process is killed, and started again after a time.
    Kill { host: usize, down: Duration },
    /// Its host loses power: what is being written is torn, and what was not synced is lost.
    Power { host: usize, down: Duration },
    /// The process is ended in order, and started again.
    Stop { host: usize, down: Duration },
    /// The process does not run.
    Freeze { host: usize, time: Duration },
    /// The host cannot reach the broker.
    Cut { host: usize, time: Duration },
    /// The wall clock of the host is wrong.
    Clock {
        host: usize,
        ahead_ms: i64,
        time: Duration,
    },
    /// The group takes a partition back for no reason.
    Move { log: i32 },
    /// The leader of a partition is away.
    Away { log: i32, time: Duration },
    /// What is produced into the partition meanwhile is in a transaction.
    Transaction {
        log: i32,
        time: Duration,
        commits: bool,
    },
    /// The partition has a transaction without an end that hides nothing but itself.
    Hang { log: i32, time: Duration },
    /// Retention removes what every process has stored.
    Retain,
    /// Compaction of the state topic.
    Compact,
    /// The disk takes long.
    SlowDisk { host: usize, time: Duration },
    /// The disk is full.
    FullDisk { host: usize, time: Duration },
    /// The state directory is gone, and is brought back.
    NoState { host: usize, time: Duration },
    /// A process that should not be there joins the group.
    Stranger { earlier: bool, time: Duration },
    /// Another process takes the `instance` of the process.
    Twin { earlier: bool, time: Duration },
    /// A claim to a partition by nobody.
    Stray { log: i32 },
    /// A consumer of another program takes all partitions of the group, and gives none back until
    /// it ends.
    Taken { time: Duration },
    /// The receiver of a sink fails.
    Sink {
        sink: usize,
        trouble: Trouble,
        time: Duration,
    },
    /// The schema registry fails.
    Registry {
        trouble: registry::Trouble,
        time: Duration,
    },
}

impl Fault {
    /// The log that it is about.
    fn log(&mut self) -> Option<&mut i32> {
        match self {
            Fault::Move { log }
            | Fault::Away { log, .. }
            | Fault::Transaction { log, .. }
            | Fault::Hang { log, .. }
            | Fault::Stray { log } => Some(log),
            _ => None,
        }
    }

    /// How long it lasts.
    pub fn lasts(&self) -> Duration {
        match *self {
            Fault::Kill { down: time, .. }
            | Fault::Power { down: time, .. }
            | Fault::Stop { down: time, .. }
            | Fault::Freeze { time, .. }
            | Fault::Cut { time, .. }
            | Fault::Clock { time, .. }
            | Fault::Away { time, .. }
            | Fault::Transaction { time, .. }
            | Fault::Hang { time, .. }
            | Fault::SlowDisk { time, .. }
            | Fault::NoState { time, .. }
            | Fault::Stranger { time, .. }
            | Fault::Twin { time, .. }
            | Fault::Taken { time }
            | Fault::Sink { time, .. }
            | Fault::Registry { time, .. }
            | Fault::FullDisk { time, .. } => time,
            Fault::Move { .. } | Fault::Retain | Fault::Compact | Fault::Stray { .. } => {
                Duration::ZERO
            }
        }
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub fleet: Fleet,
    /// The one circumstance that it is about, where it was not left to chance.
    pub circumstance: Option<Circumstance>,
    pub hosts: usize,
    /// Partitions of each topic.
    pub partitions: i32,
    /// There is a second source, of predictions whose outcomes come in a topic of their own.
    pub joined: Option<Joined>,
    /// Streams expire after [`EXPIRY`].
    pub expires: bool,
    /// Records of the first topic need a schema.
    pub schemas: bool,
    /// The process has an `instance`.
    pub named: bool,
    pub start: Start,
    pub interval_s: u64,
    pub records: Vec<Record>,
    pub faults: Vec<(Duration, Fault)>,
    /// Producers end.
    pub until: Duration,
    /// The client has a defect that is to be found.
    pub planted: bool,
}

impl Scenario {
    /// When the leader of a log is away; whoever produces cannot reach it either.
    pub fn away(&self, log: i32) -> Vec<Range<Duration>> {
        let away = self.faults.iter().filter_map(|(at, fault)| match *fault {
            Fault::Away { log: l, time } if l == log => {
                Some(*at..*at + time + Duration::from_millis(300))
            }
            _ => None,
        });
        away.collect()
    }

    /// The topics that are read, in the order in which an engine numbers them.
    pub fn topics(&self) -> &'static [&'static str] {
        match self.joined {
            Some(_) => &TOPICS,
            None => &TOPICS[..1],
        }
    }

    /// Topic and partition of a log: logs are numbered over the topics.
    pub fn place(&self, log: i32) -> (&'static str, i32) {
        let (topic, partition) = (log / self.partitions, log % self.partitions);
        (TOPICS[topic as usize], partition)
    }
}

/// Topics of events that carry their outcomes, of predictions, and of the outcomes of these.
pub const TOPICS: [&str; 3] = ["events", "predictions", "outcomes"];
/// Within this a process takes its `instance` back from one that came later.
pub const RETURNS: Duration = Duration::from_secs(26);
/// Event time after which a stream without events is let go.
pub const EXPIRY: Duration = Duration::from_secs(85);
/// Producers begin; processes are ready by then.
pub const BEGIN: Duration = Duration::from_secs(12);
/// No fault after that.
pub const CALM: Duration = Duration::from_secs(130);
/// No fault begins later than so long before that.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a transaction may hang, in seconds: beyond it a verdict is older than it may be.
const HANGS: u64 = 60;
/// Producers end.
pub const UNTIL: Duration = Duration::from_secs(190);

/// Draws from a seed.
pub struct Draw(pub Rng);

impl Draw {
    pub fn below(&mut self, n: usize) -> usize {
        (self.0.uniform() * n as f64) as usize
    }

    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + (most - least).mul_f64(self.0.uniform())
    }

    pub fn seconds(&mut self, least: u64, most: u64) -> Duration {
        self.between(Duration::from_secs(least), Duration::from_secs(most))
    }
}

/// The scenario of a seed.
pub fn draw(seed: u64, fleet: Fleet) -> Scenario {
    let mut d = Draw(Rng::new(seed));
    // What came later has a generator of its own, so that seeds without it stay what they were.
    let mut more = Draw(Rng::new(seed ^ 0x5EED));
    let joined = (more.below(3) == 0).then(|| Joined::draw(&mut more));
    let expires = more.below(4) == 0;
    let named = fleet == Fleet::Single && more.below(3) == 0;
    let partitions = 1 + d.below(4) as i32;
    let hosts = match fleet {
        Fleet::Single => 1,
        Fleet::Moving => 2 + d.below(2),
        Fleet::Judged => 3,
        Fleet::Shared => 4,
    };
    let mut scenario = Scenario {
        seed,
        fleet,
        circumstance: None,
        hosts,
        partitions,
        joined,
        expires,
        schemas: false,
        named,
        start: match fleet == Fleet::Single && d.below(3) == 0 {
            true => [Start::Latest, Start::Time][Draw(Rng::new(seed ^ 0x7135)).below(2)],
            false => Start::Earliest,
        },
        interval_s: [1, 3, 10, 30][d.below(4)],
        records: Vec::new(),
        faults: Vec::new(),
        until: UNTIL,
        planted: false,
    };
    let count = 20 + d.below(15);
    for _ in 0..count {
        let at = d.between(BEGIN, CALM - LONGEST);
        let mut fault = fault(&mut d, &scenario);
        if let Fault::Hang { time, .. } = &mut fault {
            *time = (*time).min(CALM - at);
        }
        if let (Fault::Stranger { earlier, time }, true) = (fault, named) {
            let time = time.max(RETURNS);
            fault = Fault::Twin { earlier, time };
        }
        if let (Some(log), Some(_)) = (fault.log(), joined) {
            *log += partitions * more.below(TOPICS.len()) as i32;
        }
        scenario.faults.push((at, fault));
    }
    scenario.faults.sort_by_key(|(at, _)| *at);
    produce_all(&mut d, &mut more, &mut scenario);
    if expires {
        // One of the models is quiet for about as long as streams are kept.
        let from = more.between(BEGIN, Duration::from_secs(60));
        let to = from + EXPIRY + more.seconds(0, 30);
        let quiet = |r: &Record| r.text.contains(r#""model":"b""#) && (from..to).contains(&r.at);
        scenario.records.retain(|r| !quiet(r));
    }
    scenario.records.sort_by_key(|r| (r.at, r.log));
    alerts::draw(&mut scenario);
    registry::draw(&mut scenario);
    scenario
}

fn fault(d: &mut Draw, s: &Scenario) -> Fault {
    let (host, log) = (d.below(s.hosts), d.below(s.partitions as usize) as i32);
    let single = s.fleet == Fleet::Single;
    match d.below(18) {
        0 | 1 => Fault::Kill {
            host,
            down: d.seconds(0, 12),
        },
        2 => Fault::Power {
            host,
            down: d.seconds(0, 12),
        },
        3 => Fault::Stop {
            host,
            down: d.seconds(0, 8),
        },
        4 => Fault::Freeze {
            host,
            time: d.seconds(1, 15),
        },
        5 => Fault::Cut {
            host,
            time: d.seconds(1, 20),
        },
        6 => {
            let years = 10 * 365 * 86_400_000;
            let ahead_ms = [years, -years, 3_600_000, -3_600_000][d.below(4)];
            Fault::Clock {
                host,
                ahead_ms,
                time: d.seconds(1, 20),
            }
        }
        7 | 8 => Fault::Move { log },
        9 => Fault::Away {
            log,
            time: d.seconds(1, 20),
        },
        10 | 11 => Fault::Transaction {
            log,
            time: d.seconds(2, 25),
            commits: d.below(3) > 0,
        },
        12 => Fault::Hang {
            log,
            time: d.seconds(2, HANGS),
        },
        13 => Fault::Retain,
        14 if single => Fault::SlowDisk {
            host,
            time: d.seconds(2, 20),
        },
        14 => Fault::Compact,
        15 if single => Fault::NoState {
            host,
            time: d.seconds(3, 10),
        },
        16 if single => {
            // One that started later stops by itself.
            let earlier = d.below(2) == 0;
            Fault::Stranger {
                earlier,
                time: d.seconds(3, if earlier { 30 } else { 18 }),
            }
        }
        15 | 16 => Fault::Stray { log },
        _ => Fault::FullDisk {
            host,
            time: d.seconds(1, 20),
        },
    }
}
