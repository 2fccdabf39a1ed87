//! A simulated host as its process sees it: the clients of the broker, and the workers beside the
//! engine.

mod group;
mod state;

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rdkafka::error::{KafkaError as Native, KafkaResult};
use rdkafka::types::RDKafkaErrorCode as Code;
use trueline::app::{AppError, Job, Worker, Workers};
use trueline::kafka::{
    Brokers, FollowState, GroupClient, KafkaError, KafkaOptions, ReadState, WriteState,
};

use group::Client;
use state::State;

use crate::broker::{Broker, Member};
use crate::clock;
use crate::registry::{Fetching, Registry};
use crate::sinks::{Parts, Receivers};

/// The broker, shared by all that can reach it.
pub type Shared = Arc<Mutex<Broker>>;

/// How long a write to the state topic is tried.
const WRITE: Duration = Duration::from_secs(30);

thread_local! {
    /// A job of a worker runs, which waits for nobody.
    static IN_JOB: Cell<bool> = const { Cell::new(false) };
}

/// What runs beside the engine of a host.
#[derive(Default)]
pub struct Jobs {
    /// When it was handed over, when it is done at the earliest, whether it needs the broker.
    waiting: VecDeque<(Duration, Duration, bool, Job)>,
    /// The disk is this slow.
    pub slow: Duration,
}

impl Jobs {
    /// Whether nothing is to be done.
    pub fn waiting_none(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The client and the workers of the process of one host.
#[derive(Clone)]
pub struct Site {
    pub broker: Shared,
    pub host: usize,
    pub jobs: Arc<Mutex<Jobs>>,
    /// The process was killed: what it drops says good-bye to nobody.
    pub killed: Arc<Mutex<bool>>,
    /// The state directory.
    pub folder: PathBuf,
    pub parts: Arc<Mutex<Parts>>,
    pub receivers: Arc<Mutex<Receivers>>,
    pub registry: Arc<Mutex<Registry>>,
    /// The client of the registry, where records need one.
    pub fetching: Arc<Mutex<Option<Fetching>>>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.host)
    }
}

pub fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("no panic while it was held")
}

fn timeout<T>(within: Duration) -> KafkaResult<T> {
    if !IN_JOB.get() {
        clock::sleep(within);
    }
    Err(Native::MetadataFetch(Code::OperationTimedOut))
}

fn away<T>(within: Duration) -> Result<T, KafkaError> {
    if !IN_JOB.get() {
        clock::sleep(within);
    }
    Err(KafkaError::Other("the broker is away".to_owned()))
}

impl Site {
    pub fn reaches(&self) -> bool {
        lock(&self.broker).reaches(self.host, clock::now())
    }

    /// The clients of the process leave their groups, if they can say so; or those of this group.
    pub fn leave(&self, in_order: bool, group: Option<&str>) {
        let in_order = in_order && self.reaches();
        let mut broker = lock(&self.broker);
        let mine = broker.members.iter();
        let left = |m: &Member| group.is_none_or(|group| m.group == group);
        let mine = mine.filter(|(_, m)| m.host == self.host && m.alive && left(m));
        for id in mine.map(|(id, _)| *id).collect::<Vec<_>>() {
            broker.leave(id, in_order);
        }
    }

    /// Runs the jobs that are done by now.
    pub fn work(&self, now: Duration) {
        loop {
            let mut jobs = lock(&self.jobs);
            let Some((since, due, remote, _)) = jobs.waiting.front() else {
                return;
            };
            let held = *remote && !self.reaches() && now < *since + WRITE;
            if *due > now || held {
                return;
            }
            let (.., job) = jobs.waiting.pop_front().expect("it is there");
            drop(jobs);
            IN_JOB.set(true);
            job();
            IN_JOB.set(false);
        }
    }
}

struct SimulatedWorker {
    site: Site,
    remote: bool,
}

impl Worker for SimulatedWorker {
    fn start(&mut self, job: Job) -> bool {
        let now = clock::now();
        let takes = lock(&self.site.broker).delay(1, 300);
        let mut jobs = lock(&self.site.jobs);
        let slow = if self.remote {
            Duration::ZERO
        } else {
            jobs.slow
        };
        jobs.waiting
            .push_back((now, now + takes + slow, self.remote, job));
        true
    }

    fn ends_within(&mut self, within: Duration) -> bool {
        let until = clock::now().saturating_add(within);
        while let Some(due) = {
            let jobs = lock(&self.site.jobs);
            jobs.waiting.front().map(|(since, due, remote, _)| {
                let cut = lock(&self.site.broker).hosts[self.site.host].cut;
                if *remote {
                    (*due).max(cut.min(*since + WRITE))
                } else {
                    *due
                }
            })
        } {
            if due > until {
                clock::sleep(until.saturating_sub(clock::now()));
                return false;
            }
            clock::sleep(due.saturating_sub(clock::now()));
            self.site.work(clock::now());
        }
        true
    }
}

impl Workers for Site {
    fn worker(&self, name: &str) -> Result<Box<dyn Worker>, AppError> {
        Ok(Box::new(SimulatedWorker {
            site: self.clone(),
            remote: name == "checkpoints",
        }))
    }
}

impl Brokers for Site {
    fn join(&self, options: &KafkaOptions) -> Result<Box<dyn GroupClient>, KafkaError> {
        let now = clock::now();
        // The client before is dropped on a thread of its own.
        self.leave(true, Some(&options.group));
        let mut broker = lock(&self.broker);
        if options.instance.is_some() && options.group == "g" {
            broker.unfence(self.host);
        }
        let id = broker.join(self.host, &options.group, options.subscribed(), now);
        drop(broker);
        Ok(Box::new(Client {
            site: self.clone(),
            id,
            topics: options.topics.clone(),
        }))
    }

    fn state_reader(
        &self,
        _: &KafkaOptions,
        topic: &str,
        _: usize,
    ) -> Result<Box<dyn ReadState>, KafkaError> {
        Ok(Box::new(State::new(self.clone(), topic)))
    }

    fn state_writer(
        &self,
        _: &KafkaOptions,
        topic: &str,
    ) -> Result<Arc<dyn WriteState>, KafkaError> {
        Ok(Arc::new(State::new(self.clone(), topic)))
    }

    fn state_follower(
        &self,
        _: &KafkaOptions,
        topic: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError> {
        Ok(Box::new(State::new(self.clone(), topic)))
    }
}
