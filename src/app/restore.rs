//! The topology at the start, with the state that an earlier process left: one engine, shards that
//! move with their partitions, or the aggregator of what other processes count.
//!
//! State that was found and cannot be used is logged and counted here.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::candidates::newest_usable;
use super::cluster::assignment::Assignment;
use super::cluster::checkpoint_store::CheckpointStore;
use super::cluster::judges::Judges;
use super::cluster::options::{CheckpointOptions, FollowerOptions};
use super::cluster::topology::Topology;
use super::dropped::{READ_AGAIN, report_dropped};
use super::error::AppError;
use super::journal_prefetch::JournalPrefetch;
use super::outputs::state_dir::StateDir;
use super::pool::Pool;
use super::setup::Setup;
use crate::collect::join::JoinState;
use crate::config::{Config, SourceOptions, Verdicts};
use crate::monitor::{Engine, MonitorView, Plan, Shards};
use crate::store::spill::SpillStore;
use crate::telemetry::Published;

/// The published part that is not ready while state is loaded.
pub const STATE: &str = "state";

/// The topology that a setup asks for, and the names of the topics by number.
pub fn restore(
    setup: &Setup,
    dir: &StateDir,
    spill: &Arc<SpillStore>,
    pool: &Pool,
    published: &Published,
) -> Result<(Topology, Vec<String>), AppError> {
    let (config, topics) = (&setup.config, setup.topics());
    let plan = config.plan.clone();
    let Some(options) = setup.state_topic() else {
        let (mut engine, topics) = restore_engine(plan, topics, dir, spill, published)?;
        engine.run_on(pool.runtime());
        return Ok((Topology::Single(Box::new(engine)), topics));
    };
    let topology = match config.state.verdicts {
        Verdicts::All => judges(config, &topics, options, dir, pool, published)?,
        verdicts => {
            let copartitions = copartitions(&config.sources);
            let mut shards = match verdicts {
                Verdicts::None => Shards::of_worker(plan, copartitions),
                _ => Shards::new(plan, copartitions),
            };
            shards.run_on(pool.runtime());
            sharded(shards, &topics, options, dir, spill)?
        }
    };
    Ok((topology, topics))
}

/// By topic number, the topic whose partition assignment it follows.
fn copartitions(sources: &[SourceOptions]) -> Vec<u16> {
    let mut all = Vec::new();
    for source in sources {
        let base = all.len();
        let own = source.kafka.subscribed().len().max(1);
        all.extend((0..source.kafka.topics.len()).map(|i| (base + i % own) as u16));
    }
    all
}

/// The judge of what other processes count: the only one, from the newest snapshot or without
/// state, or one of several.
fn judges(
    config: &Config,
    topics: &[String],
    checkpoints: CheckpointOptions,
    dir: &StateDir,
    pool: &Pool,
    published: &Published,
) -> Result<Topology, AppError> {
    let judge_partitions = checkpoints.judge_partitions;
    if judge_partitions.is_some() && dir.load()?.is_some() {
        return Err(AppError::Config(
            "[state] judge_partitions is set and the state directory holds the state of one judge, which cannot \
             be divided; name another directory to begin without what was judged"
                .to_owned(),
        ));
    }
    let options = FollowerOptions {
        checkpoints,
        missing_after: Duration::from_millis(config.state.missing_after_ms.unsigned_abs()),
        copartitions: copartitions(&config.sources),
        runtime: pool.runtime(),
    };
    let (plan, topics) = (config.plan.clone(), topics.to_vec());
    if let Some(partitions) = judge_partitions {
        tracing::info!(
            partitions,
            "this process judges, with others, what workers count; it reads no source"
        );
        let judges = Judges::of_group(plan, topics, options, partitions)?;
        return Ok(Topology::Judges(Box::new(judges)));
    }
    let judge = |snapshot| Judges::one(plan.clone(), topics.clone(), options.clone(), snapshot);
    let found = newest_usable(dir, published, |snapshot| {
        if snapshot.followed.is_none() {
            return Err(AppError::Config(
                "[state] verdicts is \"all\" and the state directory holds the state of a process that counts by itself; \
                 name another directory"
                    .to_owned(),
            ));
        }
        Ok(judge(Some(snapshot)))
    })?;
    let judges = match found {
        Some((judges, _)) => judges,
        None => judge(None).map_err(|error| AppError::Unavailable(error.to_string()))?,
    };
    report_dropped(
        "snapshot",
        judges.monitors().flat_map(MonitorView::dropped),
        "",
    );
    tracing::info!("this process judges what other processes count; it reads no source");
    Ok(Topology::Judges(Box::new(judges)))
}

/// One engine for all partitions, from the newest snapshot or without state, and the names of its
/// topics.
fn restore_engine(
    plan: Plan,
    topics: Vec<String>,
    dir: &StateDir,
    spill: &Arc<SpillStore>,
    published: &Published,
) -> Result<(Engine, Vec<String>), AppError> {
    let found = newest_usable(dir, published, |mut snapshot| {
        if snapshot.followed.is_some() {
            return Err(AppError::Config(
                "the state directory holds the state of a process with [state] verdicts = \"all\"; name another directory"
                    .to_owned(),
            ));
        }
        let topics = snapshot.rebind(&topics);
        let room = Some((Arc::clone(spill) as _, 1));
        thread::scope(|scope| {
            let segments = JournalPrefetch::read(scope, dir, snapshot.joins.clone())?;
            let segment = |state: &JoinState, mark: usize| {
                let segment = segments.next(state, mark);
                published.not_ready(STATE, &format!("loading, {} %", segments.percent()));
                segment
            };
            let restored = Engine::restore_spilling(plan.clone(), snapshot, &segment, room);
            Ok(restored.map(|engine| (engine, topics)))
        })
    })?;
    let Some(((mut engine, topics), file)) = found else {
        tracing::info!("no snapshot found, starting without state");
        let mut engine = Engine::new(plan);
        engine.upkeep().spill_to(Arc::clone(spill) as _, 1);
        return Ok((engine, topics));
    };
    report_dropped("snapshot", engine.dropped().iter(), READ_AGAIN);
    // Logs may have grown meanwhile.
    engine.upkeep().resume();
    let partitions = engine.shard().partitions().positions().count();
    let streams = engine.reports().count();
    let file = file.display();
    tracing::info!(%file, streams, partitions, "restored from a snapshot");
    Ok((engine, topics))
}

/// Shards that are restored from the state topic as their partitions are assigned. A snapshot in
/// the directory is a sum over all partitions, which cannot be split.
fn sharded(
    shards: Shards,
    topics: &[String],
    options: CheckpointOptions,
    dir: &StateDir,
    spill: &Arc<SpillStore>,
) -> Result<Topology, AppError> {
    if dir.load()?.is_some() {
        return Err(AppError::Config(format!(
            "[state] topic is set and the state directory holds a snapshot over all partitions, which cannot be \
             split; name another directory to start without state, or remove topic {} to keep it",
            options.topic
        )));
    }
    let mut store = CheckpointStore::new(options)?;
    store.spill_to(Arc::clone(spill) as _);
    tracing::info!("partitions are restored from the state topic as they are assigned");
    Ok(Topology::Sharded(Box::new(Assignment::new(
        shards,
        store,
        topics.to_vec(),
    ))))
}
