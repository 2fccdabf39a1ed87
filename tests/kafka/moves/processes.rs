//! Three processes that join, leave, die and freeze hold what one undisturbed process holds.

use super::{FROZEN, PARTITIONS, Process, Stage, settled};
use crate::support::broker::Broker;
use crate::support::late::{Kind, close_of, of_environment, records_of, send, spilling};
use crate::support::service::LIMIT;
use crate::support::wait_for;
use std::time::Duration;
use trueline::stats::rng::Rng;

#[test]
fn processes_that_join_leave_freeze_and_die_hold_what_one_process_holds() {
    let name = "processes_that_join_leave_freeze_and_die_hold_what_one_process_holds";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let moves = of_environment("TRUELINE_MOVES", 8);
    // Of three classes, whose largest, two largest and samples of whole vectors move.
    let kind = Kind::Vectors;
    let records = records_of(kind, of_environment("TRUELINE_EVENTS", 60_000), PARTITIONS);
    let stage = Stage::new(&broker, kind, records.len());
    // One is a static member, which keeps its partitions when it comes back soon; the others are
    // not.
    let mut all: Vec<Process> = [Some("one"), None, None]
        .map(|instance| Process::start(&spilling(&stage.config("group", instance, true))))
        .into();
    all.iter().for_each(|p| p.service.wait_ready());
    let mut sender = broker.producer();
    let mut rng = Rng::new(of_environment("TRUELINE_SEED", 11));
    let share = records.len() / moves as usize + 1;
    let mut done = Disturbed::default();
    for part in records.chunks(share) {
        let when = (rng.uniform() * 30.0) as usize;
        for (i, chunk) in part.chunks(part.len().div_ceil(30)).enumerate() {
            send(&mut sender, &stage.topics, chunk);
            std::thread::sleep(Duration::from_millis(100));
            // A partition that the broker takes later than others would have late records.
            sender.flush();
            for process in all.iter().filter(|p| p.runs && p.frozen.is_none()) {
                // Looks at conservation.
                process.service.scrape();
            }
            if i == when {
                disturb(&mut all, &mut done, &mut rng);
            }
        }
    }
    println!("{done:?}");
    assert!(
        done.killed > 0 && done.ended > 0 && done.frozen > 0,
        "{done:?}: more TRUELINE_MOVES reach every kind"
    );
    sender.flush();
    // One is left, and has all partitions when the clock moves on.
    all.iter_mut().for_each(Process::thaw);
    if !all[1].runs {
        all[1].start_again();
    }
    for which in [0, 2] {
        if all[which].runs {
            all[which].end("TERM");
        }
    }
    let last = &mut all[1];
    wait_for("one process to have all partitions", 2 * LIMIT, || {
        settled(&[&last.service], 2 * PARTITIONS as usize).then_some(())
    });
    last.service.wait_spilled();
    close_of(kind, &mut sender, &stage.topics, PARTITIONS);
    let moved = stage.judged(&last.service);
    last.end("TERM");
    stage.compare("group", &moved);
}

/// How often a process was disturbed, by kind.
#[derive(Debug, Default)]
struct Disturbed {
    killed: usize,
    ended: usize,
    frozen: usize,
}

/// Lets one process leave, die, freeze or come back. Every kind comes in turn, at whom chance
/// wants.
fn disturb(all: &mut [Process], done: &mut Disturbed, rng: &mut Rng) {
    let which = (rng.uniform() * 3.0) as usize;
    for process in all.iter_mut() {
        if process.frozen.is_some_and(|since| since.elapsed() > FROZEN) {
            process.thaw();
        }
    }
    let awake = |p: &&Process| p.runs && p.frozen.is_none();
    let alone = all.iter().filter(awake).count() < 2;
    let process = &mut all[which];
    if process.frozen.is_some() {
        return;
    }
    if !process.runs {
        return process.start_again();
    }
    match (done.killed + done.ended + done.frozen) % 4 {
        0 | 2 => {
            done.killed += 1;
            process.end("KILL");
            if alone || rng.uniform() < 0.3 {
                process.start_again();
            }
        }
        1 => {
            done.ended += 1;
            process.end("TERM");
            if alone {
                process.start_again();
            }
        }
        _ if alone => {}
        _ => {
            done.frozen += 1;
            process.freeze();
        }
    }
}
