//! Tests of sinks that change while a notification is on its way, or whose thread has ended.

use super::*;

#[test]
fn a_sink_that_changes_during_an_attempt_goes_on_after_it_and_holds_up_no_other() {
    let mut process = Process::new(&["slow", "other"]);
    let mut changed = options(&["slow", "other"]);
    for sink in &mut changed.sinks {
        sink.queue_max = 9;
    }
    process.reload(&changed);
    // The attempt of the first sink is answered, but the sink has not handled the answer yet.
    let alerts = [1, 2, 3].map(|n| firing(n, i64::from(n) * 10));
    process.notify(&alerts[0]);
    let place = 0;
    let taken = process.bench.parts.lock()[place].steps.take();
    let mut attempt = taken.expect("its thread");
    std::thread::sleep(Duration::from_millis(25));
    process.bench.answers.lock().push_back(Ok(()));
    while process.bench.came().is_empty() {
        assert_eq!(attempt.step(), Again::Now);
    }
    // The sink is changed twice meanwhile.
    for seconds in [2, 3] {
        changed.sinks[0].timeout = Duration::from_secs(seconds);
        process.reload(&changed);
        assert!(!process.notifier().replaces_sinks());
    }
    process.notify(&alerts[1]);
    process.bench.answer(&[Ok(()), Ok(())]);
    let others = [came("other", &alerts[0]), came("other", &alerts[1])];
    assert_eq!(process.bench.came(), others);
    let facts = process.notifier().sinks();
    let facts = facts.iter().map(|f| (f.name.as_str(), f.queued, f.sent));
    assert_eq!(facts.collect::<Vec<_>>(), [("slow", 2, 0), ("other", 0, 2)]);
    // The attempt ends: the rest comes in order, and once.
    process.bench.parts.lock()[place].steps = Some(attempt);
    process.bench.answer(&[Ok(())]);
    assert_eq!(process.bench.came(), [came("slow", &alerts[1])]);
    process.notify(&alerts[2]);
    process.bench.answer(&[Ok(()), Ok(())]);
    let last = [came("slow", &alerts[2]), came("other", &alerts[2])];
    assert_eq!(process.bench.came(), last);
    assert_eq!(process.notifier().sinks()[0].sent, 3);
}

#[test]
fn a_sink_whose_thread_has_ended_says_so_and_a_reload_starts_it_again() {
    let mut process = Process::new(&["s"]);
    // Ends a thread as a panic would.
    let end = |bench: &Bench, place: usize| {
        let part = &mut bench.parts.lock()[place];
        part.steps = None;
        part.ended.store(true, Ordering::Relaxed);
    };
    end(&process.bench, 0);
    let alert = firing(1, 10);
    process.notify(&alert);
    let trouble = process.notifier().sinks()[0].trouble.clone();
    assert!(trouble.is_some_and(|why| why.contains("thread has ended")));
    process.reload(&options(&["s"]));
    process.bench.answer(&[Ok(())]);
    assert_eq!(process.bench.came(), [came("s", &alert)]);
    assert_eq!(process.notifier().sinks()[0].trouble, None);
    // The thread of the journal is the second one.
    assert!(!process.notifier().has_ended());
    end(&process.bench, 1);
    assert!(process.notifier().has_ended());
}
