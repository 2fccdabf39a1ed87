//! What the records go to at the start: an engine as its snapshot left it, lanes that come and go, or the union of what
//! others count. What is found of state, and why some of it cannot be used, is said here.

use std::borrow::Cow;
use std::sync::Arc;

use super::clock;
use super::depot::{Depot, DepotOptions};
use super::engine::{Engine, Plan};
use super::engines::{Engines, Moving};
use super::fault::Fault;
use super::fleet::{Fleet, FleetOptions};
use super::lanes::Lanes;
use super::setup::{Setup, Source};
use super::snapshots::StateDir;
use crate::collect::join::JoinState;
use crate::config::Verdicts;
use crate::store::Loaded;
use crate::store::spill::SpillStore;
use crate::telemetry::Published;

/// What a setup asks for, and the names of the topics as it numbers them.
pub fn begin(
    setup: &Setup,
    dir: &StateDir,
    spill: &Arc<SpillStore>,
    published: &Published,
) -> Result<(Engines, Vec<String>), Fault> {
    let topics = setup.sources.iter().flat_map(|s| s.kafka.topics.clone());
    let topics: Vec<String> = topics.collect();
    let plan = setup.plan.clone();
    let Some(options) = setup.moving.clone() else {
        let (engine, topics) = restore(plan, topics, dir, spill, published)?;
        return Ok((Engines::Whole(Box::new(engine)), topics));
    };
    let engines = match setup.verdicts {
        Verdicts::All => fleet(setup, &topics, options, dir, published)?,
        verdicts => {
            let lanes = Lanes::new(plan, leads(&setup.sources));
            let lanes = match verdicts {
                Verdicts::None => lanes.counting(),
                _ => lanes,
            };
            moving(lanes, &topics, options, dir, spill)?
        }
    };
    Ok((engines, topics))
}

/// By number of the topic, the one with whose partitions its own go.
fn leads(sources: &[Source]) -> Vec<u16> {
    let mut leads = Vec::new();
    for source in sources {
        let base = leads.len();
        let own = source.kafka.subscribed().len().max(1);
        leads.extend((0..source.kafka.topics.len()).map(|i| (base + i % own) as u16));
    }
    leads
}

/// Tells of files that were passed over for an older one.
fn passed_over(loaded: &Loaded, published: &Published) {
    for (file, fault) in &loaded.refused {
        tracing::error!(file = %file.display(), %fault, "snapshot refused, using an older one");
    }
    published.update(|facts| facts.snapshot.refused = loaded.refused.len() as u64);
}

/// The union of what others count, as the newest snapshot left it, or a new one.
fn fleet(
    setup: &Setup,
    topics: &[String],
    depot: DepotOptions,
    dir: &StateDir,
    published: &Published,
) -> Result<Engines, Fault> {
    let loaded = dir.load()?;
    if let Some(loaded) = &loaded {
        passed_over(loaded, published);
        if loaded.snapshot.followed.is_none() {
            return Err(Fault::Config(
                "[state] verdicts is \"all\" and the state directory holds what a process by itself has counted; name \
                 another directory"
                    .to_owned(),
            ));
        }
    }
    let options = FleetOptions {
        depot,
        missing_after: setup.missing_after,
        leads: leads(&setup.sources),
    };
    let snapshot = loaded.map(|loaded| loaded.snapshot);
    let fleet = Fleet::new(setup.plan.clone(), topics.to_vec(), options, snapshot);
    let fleet = fleet.map_err(|error| Fault::Unavailable(error.to_string()))?;
    for what in fleet.union().dropped() {
        tracing::warn!(%what, "part of the snapshot dropped");
    }
    tracing::info!("what others count is judged here; no source is read");
    Ok(Engines::Judging(Box::new(fleet)))
}

/// The engine as the newest snapshot left it, or a new one; and the names of its topics. What could not
/// be used, files or streams, is named in the log and counted.
fn restore(
    plan: Plan,
    topics: Vec<String>,
    dir: &StateDir,
    spill: &Arc<SpillStore>,
    published: &Published,
) -> Result<(Engine, Vec<String>), Fault> {
    let Some(loaded) = dir.load()? else {
        tracing::info!("no snapshot found, starting without state");
        let mut engine = Engine::new(plan);
        engine.spill_to(Arc::clone(spill) as _, 1);
        engine.time_by(clock::stopwatch);
        return Ok((engine, topics));
    };
    passed_over(&loaded, published);
    if loaded.snapshot.followed.is_some() {
        return Err(Fault::Config(
            "the state directory holds what a process with [state] verdicts = \"all\" has judged; name another directory"
                .to_owned(),
        ));
    }
    let mut snapshot = loaded.snapshot;
    let topics = snapshot.rebind(&topics);
    let room = Some((Arc::clone(spill) as _, 1));
    let segment = |state: &JoinState, mark: usize| {
        let bytes = dir.segment(state, &state.marks[mark])?;
        Ok(Cow::Owned(bytes))
    };
    let restored = Engine::restore_spilling(plan, snapshot, &segment, room);
    let mut engine = restored.map_err(|error| Fault::Unavailable(error.to_string()))?;
    for what in engine.dropped() {
        tracing::warn!(%what, "part of the snapshot dropped");
    }
    engine.time_by(clock::stopwatch);
    let (streams, partitions) = (engine.reports().count(), engine.positions().len());
    let file = loaded.path.display();
    tracing::info!(%file, streams, partitions, "restored from a snapshot");
    Ok((engine, topics))
}

/// Lanes that come and go through the topic of parcels. What a process without such a topic left in the
/// directory is the sum over its partitions, which cannot be parted again.
fn moving(
    mut lanes: Lanes,
    topics: &[String],
    options: DepotOptions,
    dir: &StateDir,
    spill: &Arc<SpillStore>,
) -> Result<Engines, Fault> {
    if dir.load()?.is_some() {
        return Err(Fault::Config(format!(
            "[state] topic is set and the state directory holds a snapshot over all partitions, which cannot be \
             parted into them; name another directory to begin anew, or leave topic {} out to go on",
            options.topic
        )));
    }
    let depot = Depot::new(options);
    let mut depot = depot.map_err(|error| Fault::Config(format!("[state]: {error}")))?;
    depot.spill_to(Arc::clone(spill) as _);
    lanes.time_by(clock::stopwatch);
    tracing::info!("partitions are taken over from the state topic as they are assigned");
    Ok(Engines::Moving(Box::new(Moving::new(
        lanes,
        depot,
        topics.to_vec(),
    ))))
}
