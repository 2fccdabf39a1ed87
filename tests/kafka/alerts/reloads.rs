//! A reload that changes, adds or removes a sink loses no notification and repeats none.

use super::receiver::{Receiver, webhook};
use super::{config, keys_in_order, phase, produce, scored};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use std::time::Duration;

#[test]
fn a_reloaded_sink_goes_on_where_the_old_one_stopped() {
    let (_cluster, brokers) = scored();
    let (away, there) = (Receiver::start(true), Receiver::start(false));
    let mut service = Service::start(&config(&brokers, "scored", "1s", &webhook(&away)));
    let phase = |number: i64, good: bool| {
        produce(&brokers, "scored", &phase(&["a"], number, good));
    };
    for (number, good) in [(0, false), (1, true), (2, false)] {
        phase(number, good);
    }
    wait_for("three notices that wait", LIMIT, || {
        let queued = service.metric("trueline_notifications_queued", &["hook"]);
        (queued == 3.0).then_some(())
    });
    let reload = |service: &Service| {
        let (status, body) = service.ask("POST", "/-/reload").expect("an answer");
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(
            answer["needs_restart"],
            Value::Array(Vec::new()),
            "{answer}"
        );
        answer["applied"].clone()
    };
    let more = webhook(&there).replace("\"hook\"", "\"more\"");
    let more = more.replace("/hook", "/more");
    service.rewrite(|text| {
        let text = text.replace(&away.url("/hook"), &there.url("/hook"));
        text.replace("[http]", &format!("{more}[http]"))
    });
    let applied = reload(&service);
    assert_eq!(applied, serde_json::json!(["sink.hook.url", "sink.more"]));
    let told = |n: usize, m: usize| {
        wait_for("notices", LIMIT, || {
            let all = (there.of("/hook").len(), there.of("/more").len());
            (all.0 >= n && all.1 >= m).then_some(())
        });
        std::thread::sleep(Duration::from_secs(1));
        let all = (there.of("/hook").len(), there.of("/more").len());
        assert_eq!(all, (n, m));
    };
    // What waited, in order; the new sink gets what fires, once.
    told(3, 1);
    phase(3, true);
    told(4, 2);
    phase(4, false);
    told(5, 3);
    service.rewrite(|text| text.replace(&more, ""));
    assert_eq!(reload(&service), serde_json::json!(["sink.more"]));
    phase(5, true);
    told(6, 3);
    service.end("KILL");
    service.start_again();
    phase(6, false);
    told(7, 3);
    keys_in_order("webhook", &there.of("/hook"));
    assert!(away.of("/hook").is_empty());
}
