//! Alerts that move between processes while sinks are away.

use super::*;
use crate::alert::Deployment;
use crate::notify::journal::TransferredAlert;
use crate::notify::missed::Missed;

impl Process {
    /// A process whose partitions may move.
    fn moving() -> Process {
        let mut process = Process::new(&["s"]);
        process.moving = true;
        process.start(&["s"]);
        process
    }

    fn transfers(&mut self) -> Option<Transfers<String>> {
        self.notifier().transfers(Duration::from_secs(1))
    }

    /// What moves with the alert, if there is a new account.
    fn transfer(&mut self, alert: &Notification) -> Option<String> {
        let mut all = self.transfers().expect("a change");
        all.open.remove(&alert.fingerprint)
    }

    /// The alert arrives with this text; for its last owner it ended at `ended_ms`.
    fn acquire(
        &mut self,
        alert: &Notification,
        transferred: Option<String>,
        ended_ms: Option<i64>,
    ) {
        self.notifier().acquire(&AlertHandover {
            fingerprint: alert.fingerprint.clone(),
            transferred,
            ended_ms,
        });
        self.bench.settle();
    }

    /// Makes receivers available from now on. Returns what they got.
    fn answers(&mut self) -> Vec<(String, String)> {
        self.bench.answer(&[Ok(()); 9]);
        self.bench.settle();
        self.bench.answers.lock().clear();
        self.bench.came()
    }
}

#[test]
fn of_what_the_streams_of_an_alert_bring_the_newest_counts() {
    let mut process = Process::moving();
    let alert = firing(1, 10);
    process.notify(&alert);
    let fires = process.transfer(&alert);
    process.notify(&alert.resolved(20, "well"));
    let over = process.transfer(&alert);
    assert!(fires.is_some() && over.is_some() && fires != over);
    let unreadable = || Some("{".to_owned());
    for brought in [
        [&fires, &over, &None],
        [&over, &fires, &unreadable()],
        [&None, &over, &fires],
    ] {
        let mut handover = AlertHandover {
            fingerprint: alert.fingerprint.clone(),
            transferred: None,
            ended_ms: None,
        };
        brought
            .into_iter()
            .for_each(|text| handover.bring(text.clone()));
        assert_eq!(handover.transferred, over);
    }
}

#[test]
fn an_alert_that_comes_while_the_disk_is_busy_ends_for_those_who_know_of_it() {
    let (mut one, mut two) = (Process::moving(), Process::moving());
    let alert = firing(1, 10);
    one.notify(&alert);
    assert_eq!(one.answers(), [came("s", &alert)]);
    let text = one.transfer(&alert);
    // The journal is not written until the channel is full.
    for n in 0.. {
        two.notifier().record_deployment(Deployment {
            model: format!("m{n}"),
            version: None,
            at_ms: n,
            by: "ci".to_owned(),
            note: String::new(),
        });
        if two.notifier().dropped() > 0 {
            break;
        }
    }
    two.acquire(&alert, text, None);
    assert_eq!(two.notifier().dropped(), 2);
    assert!(!two.offer(&alert), "it was delivered");
    let end = alert.resolved(20, "well");
    two.notify(&end);
    assert_eq!(two.answers(), [came("s", &end)]);
}

#[test]
fn another_process_that_takes_an_alert_over_knows_what_its_sinks_missed() {
    let mut process = Process::new(&["s"]);
    let alert = firing(1, 10);
    process.notify(&alert);
    process.bench.answer(&[Err(())]);
    assert!(!process.offer(&alert));
    let text = process.transfer(&alert);
    let mut next = Process::new(&["s"]);
    next.acquire(&alert, text, None);
    assert!(!next.offer(&alert));
    NOW_MS.set(BEGIN_MS + 60 * MINUTE_MS);
    assert!(next.offer(&alert));
    next.bench.answer(&[Ok(())]);
    assert_eq!(next.bench.came(), [came("s", &alert)]);
}

#[test]
fn what_waits_is_sent_by_the_next_owner_and_not_by_the_last_one() {
    for returns in ["while it fires", "after its end", "to nothing"] {
        let (mut one, mut two) = (Process::moving(), Process::moving());
        let alert = firing(1, 10);
        one.notify(&alert);
        let text = one.transfer(&alert);
        two.acquire(&alert, text, None);
        assert!(!two.offer(&alert), "it is queued, not offered");
        assert_eq!(two.answers(), [came("s", &alert)], "under its key");
        assert!(!two.offer(&alert));
        one.start(&["s"]);
        assert_eq!(one.answers(), [], "nobody knows yet who has it");
        let end = alert.resolved(20, "well");
        match returns {
            "while it fires" => {
                let text = two.transfer(&alert);
                one.acquire(&alert, text, None);
                assert_eq!(one.answers(), [], "it was delivered");
                one.notify(&end);
                assert_eq!(one.answers(), [came("s", &end)]);
            }
            "after its end" => {
                two.notify(&end);
                assert_eq!(two.answers(), [came("s", &end)]);
                assert_eq!(two.transfer(&alert), None);
                one.acquire(&alert, None, Some(20));
                let again = firing(1, 30);
                one.notify(&again);
                assert_eq!(one.answers(), [came("s", &again)], "nothing older");
            }
            _ => assert_eq!(one.answers(), []),
        }
    }
}

#[test]
fn what_waits_is_sent_after_a_restart_by_a_process_that_gets_its_alerts_back() {
    let alert = firing(1, 10);
    let end = alert.resolved(20, "well");
    // With the last text, with none because it was not stored, and with the text of a previous
    // version, which has no waiting notifications.
    for stored in ["all", "nothing", "before"] {
        for ends in [false, true] {
            let mut process = Process::moving();
            process.notify(&alert);
            let before = process.transfer(&alert);
            if ends {
                process.notify(&end);
            }
            let text = match stored {
                "all" if ends => process.transfer(&alert),
                "all" => before,
                "nothing" => None,
                _ => before.map(|text| {
                    let mut said: TransferredAlert = serde_json::from_str(&text).expect("an alert");
                    assert_eq!(said.missed.remove("s"), Some(Missed::default()));
                    said.earlier = None;
                    serde_json::to_string(&said).expect("JSON")
                }),
            };
            process.start(&["s"]);
            assert_eq!(process.answers(), []);
            process.acquire(&alert, text, None);
            let all = [came("s", &alert), came("s", &end)];
            assert_eq!(process.answers(), all[..=usize::from(ends)], "{stored}");
            process.start(&["s"]);
            process.acquire(&alert, None, None);
            assert_eq!(process.answers(), [], "once");
        }
    }
}

#[test]
fn a_process_that_goes_on_keeps_back_what_waits_of_an_alert_that_leaves() {
    let mut process = Process::moving();
    let (leaves, stays) = (firing(1, 10), firing(2, 20));
    process.notify(&leaves);
    let text = process.transfer(&leaves);
    process.notifier().release(&leaves.fingerprint);
    process.bench.settle();
    process.notify(&stays);
    assert_eq!(process.answers(), [came("s", &stays)]);
    // The alert comes back, and no process has sent it.
    process.acquire(&leaves, text, None);
    assert_eq!(process.answers(), [came("s", &leaves)]);
    assert_eq!(process.answers(), []);
}

#[test]
fn an_alert_that_came_and_went_while_the_sink_was_away_goes_along_as_a_whole() {
    let (mut one, mut two) = (Process::moving(), Process::moving());
    let alert = firing(1, 10);
    let end = alert.resolved(20, "well");
    one.notify(&alert);
    one.notify(&end);
    let text = one.transfer(&alert);
    two.acquire(&alert, text, Some(20));
    assert_eq!(two.answers(), [came("s", &alert), came("s", &end)]);
    assert_eq!(two.transfer(&alert), None);
    one.start(&["s"]);
    one.acquire(&alert, None, Some(20));
    assert_eq!(one.answers(), []);
}

#[test]
fn an_end_that_waits_goes_along_and_a_newer_firing_drops_it() {
    let (mut one, mut two) = (Process::moving(), Process::moving());
    let alert = firing(1, 10);
    one.notify(&alert);
    assert_eq!(one.answers(), [came("s", &alert)]);
    let end = alert.resolved(20, "well");
    one.notify(&end);
    let text = one.transfer(&alert);
    two.acquire(&alert, text, Some(20));
    assert_eq!(two.answers(), [came("s", &end)]);
    let again = firing(1, 30);
    two.notify(&again);
    assert_eq!(two.answers(), [came("s", &again)]);
    let text = two.transfer(&alert);
    one.start(&["s"]);
    one.acquire(&alert, text, Some(20));
    assert_eq!(one.answers(), []);
    let end = again.resolved(40, "well");
    one.notify(&end);
    assert_eq!(one.answers(), [came("s", &end)]);
}

#[test]
fn what_goes_along_says_at_once_that_the_sink_has_it() {
    let mut process = Process::moving();
    let alert = firing(1, 10);
    process.notify(&alert);
    let lacking = |text: Option<String>| -> Vec<String> {
        let text = text.expect("it fires");
        let said: TransferredAlert = serde_json::from_str(&text).expect("an alert");
        said.missed.into_keys().collect()
    };
    assert_eq!(lacking(process.transfer(&alert)), ["s"]);
    assert_eq!(process.transfers(), None);
    assert_eq!(process.answers(), [came("s", &alert)]);
    assert_eq!(lacking(process.transfer(&alert)), [""; 0]);
}

#[test]
fn an_end_that_all_sinks_have_is_said_once_and_is_known_to_who_goes_on_from_before_it() {
    let mut process = Process::moving();
    let alert = firing(1, 10);
    process.notify(&alert);
    assert_eq!(process.answers(), [came("s", &alert)]);
    assert!(process.transfer(&alert).is_some());
    let end = alert.resolved(40, "well");
    process.notify(&end);
    let waits = process.transfers().expect("it waits");
    assert!(waits.open.contains_key(&alert.fingerprint) && waits.ended.is_empty());
    assert_eq!(process.answers(), [came("s", &end)]);
    let mut said = process.transfers().expect("the sink has it");
    assert!(said.open.is_empty());
    let text = said.ended.remove(&alert.fingerprint);
    assert!(text.is_some());
    assert_eq!(process.transfers(), None);
    // Another process judges everything again, from a state before the alert began.
    let mut next = Process::moving();
    next.acquire(&alert, text, None);
    for known in [&alert, &end] {
        let sent = next.notifier().notify(known.clone(), NOW_MS.get());
        assert!(!sent, "{}", known.key);
    }
    let again = firing(1, 50);
    next.notify(&again);
    assert_eq!(next.answers(), [came("s", &again)]);
}

#[test]
fn what_a_sink_took_is_handed_over_at_once_and_who_takes_over_then_does_not_send_it_again() {
    let mut process = Process::moving();
    let delivered: Arc<Mutex<Vec<Delivered>>> = Arc::default();
    let told = Arc::clone(&delivered);
    let listener = move |of| told.lock().push(of);
    process.notifier().listen(Box::new(listener));
    let alert = firing(1, 10);
    process.notify(&alert);
    let waits = process.transfer(&alert);
    assert!(delivered.lock().is_empty(), "it waits");
    assert_eq!(process.answers(), [came("s", &alert)]);
    let said = delivered.lock().pop().expect("it was delivered");
    assert_eq!(said.fingerprint, alert.fingerprint);
    assert_eq!(fingerprint_of(&said.text), Some(alert.fingerprint.clone()));
    assert_eq!(said.stream.model, alert.model);
    // The engine's thread hands over the same text later.
    let text = process.transfer(&alert);
    assert_eq!(Some(&said.text), text.as_ref());
    for brought in [
        [waits.clone(), Some(said.text.clone())],
        [Some(said.text.clone()), waits],
    ] {
        let mut handover = AlertHandover {
            fingerprint: alert.fingerprint.clone(),
            transferred: None,
            ended_ms: None,
        };
        brought.into_iter().for_each(|text| handover.bring(text));
        assert_eq!(handover.transferred, text);
    }
    let mut next = Process::moving();
    next.acquire(&alert, text, None);
    assert_eq!(next.answers(), []);
    // Ends are handed over too, except what a sink refused.
    let end = alert.resolved(20, "well");
    process.notify(&end);
    assert_eq!(process.answers(), [came("s", &end)]);
    let said = delivered.lock().pop().expect("it was delivered");
    next.acquire(&alert, Some(said.text), None);
    assert_eq!(next.answers(), []);
    assert!(
        !next
            .notifier()
            .firing()
            .any(|(of, _)| of == alert.fingerprint)
    );
    process.notify(&firing(2, 30));
    process.bench.answer(&[Err(())]);
    assert!(delivered.lock().is_empty());
}
