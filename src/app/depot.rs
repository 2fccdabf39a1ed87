//! Where lanes come from and go to: the topic of parcels, with a thread that writes to it.
//!
//! The format and the protocol are in [`crate::store::parcel`]. Taking a lane over waits on the engine's
//! thread, within the rebalance that gave it: nothing of the partition may be read before. Writing goes
//! beside the engine as with snapshots on disk: a copy of the changed lanes is taken at one moment, one
//! batch is under way at a time, and a batch that was not written is written with the next. Giving a
//! lane up waits for one last parcel, for half a session at most: longer and the group would have put us
//! out before we were done. What is not written by then is read again by the taker; nothing is lost.
//!
//! A partition whose parcels cannot be used is *barred*: it stays assigned here, is not read, and is shown
//! as not ready with the reason, until somebody mends the topic or says `on_broken = "fresh"`. The same
//! holds where the group has committed an offset of the partition and the topic knows nothing of it: then
//! the topic is another, or was emptied.

use super::berth::{Berth, Mark, WHOLE};
use super::clock;
use super::engine::{Engine, Plan, Remembered, RestoreError};
use super::lanes::Lane;
use super::snapshots::Written;
use crate::collect::Origin;
use crate::collect::join::{JoinState, JournalError, SpillError, Spills};
use crate::kafka::{KafkaError, KafkaOptions, StateTopic, StateWriter};
use crate::store::Snapshot;
use crate::store::file::Fault;
use crate::store::laid::Laid;
use crate::store::parcel::{self, CHUNK_BYTES, Found, Keyed, Parcel, Piece, Shelf, Stretch};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long one batch of parcels may take to be written before it is called failed.
const WRITE: Duration = Duration::from_secs(30);

/// Longest wait for the last parcel of a lane, where sessions are long.
const LEAVE_MAX: Duration = Duration::from_secs(10);

/// What the depot needs to know.
#[derive(Debug, Clone)]
pub struct DepotOptions {
    /// Brokers and credentials.
    pub kafka: KafkaOptions,
    /// The group that reads each topic, by number.
    pub groups: Vec<String>,
    /// Name of the topic.
    pub topic: String,
    /// How long taking one partition over may take.
    pub restore_within: Duration,
    /// Whether a partition whose parcels cannot be used begins anew; otherwise it stops.
    pub fresh: bool,
}

/// Where predictions go that memory has no room for, and how many lanes share the memory.
pub type Room = (Arc<dyn Spills>, usize);

/// A lane on its way to the topic.
struct Outgoing {
    source: u16,
    partition: i32,
    home: i32,
    prefix: String,
    epoch: i64,
    number: u64,
    parcel: Parcel,
    pieces: Vec<(Piece, Vec<u8>)>,
    drops: Vec<String>,
    positions: Vec<Origin>,
    mark: Mark,
    /// First journal segment that the parcel needs.
    needs: u64,
    /// How much was laid out.
    laid: u64,
}

/// What became of a batch.
struct Answer {
    sent: Vec<Outgoing>,
    result: Result<(), String>,
    took: Duration,
    bytes: u64,
}

/// What happened to parcels, for metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParcelCounts {
    /// Parcels written.
    pub written: u64,
    /// Bytes written, of parcels and journals.
    pub written_bytes: u64,
    /// Parcels read.
    pub read: u64,
    /// Bytes read to find them.
    pub read_bytes: u64,
    /// Parcels passed over for an older one.
    pub refused: u64,
    /// How long the last take-over took.
    pub restore_seconds: f64,
}

/// Topic and partition, and when their parcel was last written or read, in milliseconds since 1970.
pub type ParcelAge<'a> = (&'a str, i32, Option<i64>);

/// How a partition was found.
pub enum Taken {
    /// A lane to go on with, and what was remembered of its streams.
    Lane(Box<Lane>, Vec<Remembered>),
    /// It is not to be read, for this reason.
    Barred(String),
    /// The store of what memory has no room for failed, as it may at any time.
    Broken(SpillError),
}

/// See the module.
pub struct Depot {
    options: DepotOptions,
    state: StateTopic,
    writer: Arc<StateWriter>,
    letters: Option<Sender<Vec<Outgoing>>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
    busy: bool,
    counts: ParcelCounts,
    /// For the lanes that are made here.
    room: Option<Room>,
}

impl Depot {
    /// Starts the thread; asks nothing of the broker yet.
    pub fn new(options: DepotOptions) -> Result<Depot, KafkaError> {
        let state = StateTopic::new(&options.kafka, &options.topic, CHUNK_BYTES)?;
        let writer = Arc::new(StateWriter::new(&options.kafka, &options.topic)?);
        let (letters, inbox) = channel::<Vec<Outgoing>>();
        let (outbox, answers) = channel();
        let hand = Arc::clone(&writer);
        let thread = thread::Builder::new()
            .name("parcels".to_owned())
            .spawn(move || {
                for letter in inbox {
                    if outbox.send(write(&hand, letter)).is_err() {
                        return;
                    }
                }
            })
            .map_err(|e| KafkaError::Other(format!("cannot start a thread: {e}")))?;
        Ok(Depot {
            options,
            state,
            writer,
            letters: Some(letters),
            answers,
            thread: Some(thread),
            busy: false,
            counts: ParcelCounts::default(),
            room: None,
        })
    }

    /// Lanes that are made from now on put there what memory has no room for.
    pub fn spill_to(&mut self, spills: Arc<dyn Spills>) {
        self.room = Some((spills, 1));
    }

    /// How many lanes share the memory, with the one that is made next.
    pub fn share(&mut self, lanes: usize) {
        if let Some((_, by)) = &mut self.room {
            *by = lanes;
        }
    }

    /// What happened so far.
    pub fn counts(&self) -> &ParcelCounts {
        &self.counts
    }

    /// Takes a partition over: claims it, reads what was written of it, and makes its lane. An error
    /// passes: the broker is away or slow.
    pub fn take_over(
        &mut self,
        (source, partition): (u16, i32),
        topics: &[String],
        plan: Plan,
    ) -> Result<Taken, KafkaError> {
        let start = Instant::now();
        let within = self.options.restore_within;
        let topic = topics.get(usize::from(source)).cloned().unwrap_or_default();
        let groups = &self.options.groups;
        let group = groups.get(usize::from(source)).cloned().unwrap_or_default();
        let prefix = parcel::prefix(&group, &topic, partition);
        let home = self.state.state_partition(partition, topics)?;
        let claim: Keyed = (parcel::claim_key(&prefix), Some(self.claimant()));
        let epoch = self.writer.put(&[(home, &claim)], within)?;
        let epoch = epoch.first().copied().unwrap_or_default();
        let mut shelf = Shelf::new(prefix.clone());
        let left = within.saturating_sub(start.elapsed());
        self.state
            .read(home, epoch, left, |key, value| shelf.take(key, value))?;
        let berth = Berth {
            group,
            topic,
            home,
            prefix,
            epoch,
            lineage: vec![Stretch {
                segment: 0,
                offset: 0,
                epoch,
            }],
            old: shelf.older(epoch),
            pieces: shelf.pieces().collect(),
            ..Berth::default()
        };
        self.counts.read_bytes += shelf.bytes();
        let taken = self.open((source, partition), topics, plan, &shelf, berth);
        self.counts.restore_seconds = start.elapsed().as_secs_f64();
        taken
    }

    fn open(
        &mut self,
        (source, partition): (u16, i32),
        topics: &[String],
        plan: Plan,
        shelf: &Shelf,
        mut berth: Berth,
    ) -> Result<Taken, KafkaError> {
        let at = (source, partition);
        let why = match shelf.open() {
            Ok(Some(found)) => {
                for (key, fault) in &found.refused {
                    tracing::error!(%key, %fault, "parcel refused, using an older one");
                    self.counts.refused += 1;
                }
                berth.resume(shelf, &found);
                match lane_of(at, found, topics, plan.clone(), berth, self.room.clone()) {
                    Ok((lane, memories)) => {
                        self.counts.read += 1;
                        return Ok(Taken::Lane(Box::new(lane), memories));
                    }
                    Err(Unusable::Parcel(why, back)) => {
                        berth = *back;
                        why
                    }
                    // Nothing that a fresh beginning would mend.
                    Err(Unusable::Store(error)) => return Ok(Taken::Broken(error)),
                }
            }
            Ok(None) => match self
                .state
                .committed(&berth.group, &berth.topic, partition)?
            {
                None => return Ok(fresh(at, topics, plan, berth, self.room.clone())),
                Some(offset) => format!(
                    "the group has committed offset {offset} and topic {} holds no parcel of it: it was \
                     emptied, or is another",
                    self.options.topic
                ),
            },
            Err(faults) => {
                self.counts.refused += faults.len() as u64;
                let named = |(key, fault): &(String, Fault)| format!("{key}: {fault}");
                let all: Vec<String> = faults.iter().map(named).collect();
                format!(
                    "no usable parcel in {}: {}",
                    self.options.topic,
                    all.join("; ")
                )
            }
        };
        if self.options.fresh {
            tracing::error!(
                topic = berth.topic,
                partition,
                why,
                "partition begins without its state"
            );
            // Whatever lies there is not of this beginning.
            berth.begin_journal();
            return Ok(fresh(at, topics, plan, berth, self.room.clone()));
        }
        Ok(Taken::Barred(format!(
            "{why}; mend the topic, or set [state] on_broken = \"fresh\" to begin without the state"
        )))
    }

    /// Who claims, for people who look into the topic.
    fn claimant(&self) -> Vec<u8> {
        let kafka = &self.options.kafka;
        let name = kafka.instance.as_deref().unwrap_or("-");
        format!("{name} {} {}", std::process::id(), clock::now_ms()).into_bytes()
    }

    /// Whether a batch is being written.
    pub fn busy(&self) -> bool {
        self.busy
    }

    /// Hands over the lanes that have changed since they were last written. It is an error to do so
    /// while [`busy`](Depot::busy).
    pub fn write(
        &mut self,
        lanes: &mut [Lane],
        remembered: &BTreeMap<(u16, i32), Vec<Remembered>>,
    ) {
        let mut letter = Vec::new();
        for lane in lanes {
            let memories = remembered.get(&(lane.source, lane.partition));
            letter.extend(outgoing(lane, memories.map_or(&[], Vec::as_slice)));
        }
        self.send(letter);
    }

    fn send(&mut self, letter: Vec<Outgoing>) {
        if let Some(letters) = &self.letters {
            self.busy = letters.send(letter).is_ok();
        }
    }

    /// What became of the last batch, once, if it is known.
    pub fn answer(&mut self, lanes: &mut [Lane]) -> Option<Written> {
        let answer = self.answers.try_recv().ok()?;
        Some(self.settle(answer, lanes))
    }

    /// Waits for the batch under way.
    pub fn wait(&mut self, lanes: &mut [Lane], within: Duration) -> Option<Written> {
        if !self.busy {
            return None;
        }
        let answer = self.answers.recv_timeout(within).ok()?;
        Some(self.settle(answer, lanes))
    }

    fn settle(&mut self, answer: Answer, lanes: &mut [Lane]) -> Written {
        self.busy = false;
        let at_ms = clock::now_ms();
        let mut positions = Vec::new();
        if answer.result.is_ok() {
            self.counts.written += answer.sent.len() as u64;
            self.counts.written_bytes += answer.bytes;
        }
        for sent in answer.sent {
            let mine = |l: &&mut Lane| {
                (l.source, l.partition, l.berth.epoch) == (sent.source, sent.partition, sent.epoch)
            };
            let Some(lane) = lanes.iter_mut().find(mine) else {
                continue;
            };
            let berth = &mut lane.berth;
            if answer.result.is_err() {
                let newer = std::mem::take(&mut berth.unwritten);
                berth.unwritten = sent.pieces.into_iter().chain(newer).collect();
                continue;
            }
            berth.number = sent.number;
            berth
                .pieces
                .extend(sent.pieces.iter().map(|(piece, _)| *piece));
            berth.needed.push_back(sent.needs);
            if berth.needed.len() > WHOLE {
                berth.needed.pop_front();
            }
            berth.written = Some(sent.mark);
            berth.at_ms = Some(at_ms);
            lane.is_safe(sent.laid);
            positions.extend(sent.positions);
        }
        Written {
            result: answer.result.map(|()| positions),
            took: answer.took,
            at_ms,
            bytes: answer.bytes,
            unwritten: lanes.iter().map(|l| l.berth.unwritten()).sum(),
        }
    }

    /// Writes the last parcel of a lane before it is given up, as far as the group leaves time for it.
    pub fn leave(&mut self, lane: &mut Lane, remembered: &[Remembered], others: &mut [Lane]) {
        let half = Duration::from_millis(self.options.kafka.session_ms() / 2);
        let (start, within) = (Instant::now(), half.min(LEAVE_MAX));
        if self.busy {
            let answer = self.answers.recv_timeout(within).ok();
            if let Some(answer) = answer {
                // It may have been of this lane too.
                let (mine, theirs): (Vec<_>, Vec<_>) = answer
                    .sent
                    .into_iter()
                    .partition(|s| (s.source, s.partition) == (lane.source, lane.partition));
                let (took, bytes) = (answer.took, answer.bytes);
                let part = |sent, bytes| Answer {
                    sent,
                    result: answer.result.clone(),
                    took,
                    bytes,
                };
                self.settle(part(mine, 0), std::slice::from_mut(lane));
                self.settle(part(theirs, bytes), others);
            }
        }
        let (topic, partition) = (lane.berth.topic.clone(), lane.partition);
        let late = |why: &str| {
            tracing::warn!(
                topic,
                partition,
                why,
                "last parcel not written; the taker reads more again"
            );
        };
        if self.busy {
            return late("the batch before takes too long");
        }
        let Some(last) = outgoing(lane, remembered) else {
            return;
        };
        self.send(vec![last]);
        let left = within.saturating_sub(start.elapsed());
        match self.wait(std::slice::from_mut(lane), left) {
            Some(Written { result: Ok(_), .. }) => {}
            Some(Written {
                result: Err(why), ..
            }) => late(&why),
            None => late("the broker did not answer in time"),
        }
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        self.letters = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

impl Lane {
    /// Topic, partition, and when its last parcel was written or read.
    pub fn parcel_age(&self) -> ParcelAge<'_> {
        (&self.berth.topic, self.partition, self.berth.at_ms)
    }
}

fn fresh(
    at: (u16, i32),
    topics: &[String],
    plan: Plan,
    mut berth: Berth,
    room: Option<Room>,
) -> Taken {
    berth.origin = None;
    let mut engine = Engine::new(plan);
    if let Some((spills, lanes)) = room {
        engine.spill_to(spills, lanes);
    }
    let lane = Lane::new(at, engine, topics.to_vec(), berth);
    Taken::Lane(Box::new(lane), Vec::new())
}

/// Why a lane could not be made of a parcel.
#[derive(Debug)]
enum Unusable {
    /// The parcel is at fault; here is its berth again.
    Parcel(String, Box<Berth>),
    /// The store of pending predictions is.
    Store(SpillError),
}

/// The lane that a parcel holds.
fn lane_of(
    at: (u16, i32),
    found: Found,
    topics: &[String],
    plan: Plan,
    mut berth: Berth,
    room: Option<Room>,
) -> Result<(Lane, Vec<Remembered>), Unusable> {
    let mut snapshot = found.parcel.snapshot;
    let topics = snapshot.rebind(topics);
    let segments = match snapshot.joins.is_empty() {
        true => Vec::new(),
        false => vec![found.segments],
    };
    let joins = snapshot.joins.len();
    if joins != segments.len() {
        let why = format!("its parcel holds {joins} joins where a partition has one");
        return Err(Unusable::Parcel(why, Box::new(berth)));
    }
    let segment = |_: &JoinState, mark: usize| {
        let bytes = segments.first().and_then(|s| s.get(mark));
        let bytes = bytes.ok_or(JournalError::Torn)?;
        Ok(Cow::Borrowed(bytes.as_slice()))
    };
    let engine = match Engine::restore_spilling(plan, snapshot, &segment, room) {
        Ok(engine) => engine,
        Err(RestoreError::Spill(error)) => return Err(Unusable::Store(error)),
        Err(error) => return Err(Unusable::Parcel(error.to_string(), Box::new(berth))),
    };
    for what in engine.dropped() {
        tracing::warn!(%what, "part of a parcel dropped");
    }
    if !engine.has_journals() {
        berth.begin_journal();
    }
    berth.written = Some(mark_of(&engine, &found.parcel.memories));
    berth.at_ms = Some(clock::now_ms());
    Ok((Lane::new(at, engine, topics, berth), found.parcel.memories))
}

fn mark_of(engine: &Engine, remembered: &[Remembered]) -> Mark {
    let alerts = remembered.iter().map(|m| (m.alert, m.told.clone()));
    Mark {
        records: engine.counters().total().records,
        lines: engine.lines(),
        idle: engine.is_idle(),
        alerts: alerts.collect(),
    }
}

/// A lane as it is now; `None` where nothing happened since it was last written.
fn outgoing(lane: &mut Lane, remembered: &[Remembered]) -> Option<Outgoing> {
    let mark = mark_of(&lane.engine, remembered);
    if lane.berth.written.as_ref() == Some(&mark) || lane.engine.fault().is_some() {
        return None;
    }
    let deltas = lane.engine.take_journals();
    let laid = lane.laid();
    let snapshot = Snapshot {
        topics: lane.topics.clone(),
        ..lane.engine.snapshot()
    };
    let positions = lane.engine.positions();
    let upto = laid.as_ref().map_or(0, Laid::upto);
    let berth = &mut lane.berth;
    for delta in deltas {
        let mut offset = delta.offset;
        for bytes in delta.bytes.chunks(CHUNK_BYTES) {
            let piece = (delta.segment, offset, berth.epoch);
            berth.unwritten.push((piece, bytes.to_vec()));
            offset += bytes.len() as u64;
        }
    }
    let mut marks = snapshot.joins.iter().flat_map(|j| &j.marks);
    let needs = marks.next().map_or(0, |m| m.segment);
    berth.prune(needs);
    Some(Outgoing {
        source: lane.source,
        partition: lane.partition,
        home: berth.home,
        prefix: berth.prefix.clone(),
        epoch: berth.epoch,
        number: berth.number + 1,
        parcel: Parcel {
            snapshot,
            memories: remembered.to_vec(),
            lineage: berth.lineage.clone(),
            laid,
        },
        drops: berth.drops(),
        pieces: std::mem::take(&mut berth.unwritten),
        positions,
        mark,
        needs,
        laid: upto,
    })
}

/// Writes a batch: bodies and journals, then heads, then what is no longer needed goes.
fn write(writer: &StateWriter, sent: Vec<Outgoing>) -> Answer {
    let start = Instant::now();
    let written = try_write(writer, &sent);
    Answer {
        result: written.as_ref().map(|_| ()).map_err(Clone::clone),
        bytes: written.unwrap_or(0),
        sent,
        took: start.elapsed(),
    }
}

fn try_write(writer: &StateWriter, sent: &[Outgoing]) -> Result<u64, String> {
    let (mut bodies, mut heads, mut drops) = (Vec::new(), Vec::new(), Vec::new());
    for o in sent {
        for (piece, bytes) in &o.pieces {
            let key = parcel::piece_key(&o.prefix, *piece);
            bodies.push((o.home, (key, Some(bytes.clone()))));
        }
        let (body, head) = parcel::records(&o.parcel, &o.prefix, o.epoch, o.number)?;
        bodies.extend(body.into_iter().map(|keyed| (o.home, keyed)));
        heads.push((o.home, head));
        drops.extend(o.drops.iter().map(|key| (o.home, (key.clone(), None))));
    }
    let size =
        |(_, (key, value)): &(i32, Keyed)| (key.len() + value.as_ref().map_or(0, Vec::len)) as u64;
    let bytes = bodies.iter().chain(&heads).map(size).sum();
    put(writer, &bodies)?;
    put(writer, &heads)?;
    // What stays is in nobody's way.
    let _ = put(writer, &drops);
    Ok(bytes)
}

fn put(writer: &StateWriter, records: &[(i32, Keyed)]) -> Result<(), String> {
    let all: Vec<(i32, &Keyed)> = records.iter().map(|(home, keyed)| (*home, keyed)).collect();
    match writer.put(&all, WRITE) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
