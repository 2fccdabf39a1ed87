//! The verbs `alert` and `explain`: what people silence, acknowledge and test holds at once and
//! after a kill.

use super::receiver::{Receiver, webhook};
use super::{config, phase, produce, scored, trueline};
use crate::support::broker::unique;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn people_silence_and_acknowledge_and_a_restart_remembers_it() {
    let (_cluster, brokers) = scored();
    let receiver = Receiver::start(false);
    let mut service = Service::start(&config(&brokers, "scored", "1s", &webhook(&receiver)));
    wait_for("an answer", LIMIT, || service.get("/live"));
    let url = service.url();
    let ask = |arguments: &[&str]| {
        let mut all = vec!["alert"];
        all.extend(arguments);
        all.extend(["--url", &url]);
        trueline(&all)
    };
    let (code, said) = ask(&[
        "silence", "model=b", "--for", "1h", "--by", "ann", "--note", "release",
    ]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = ask(&["silence", "modle=b"]);
    assert!(
        code == Some(64) && said.contains("model, version"),
        "{code:?} {said}"
    );
    produce(&brokers, "scored", &phase(&["a", "b"], 0, false));
    wait_for("one alert", LIMIT, || {
        (receiver.of("/hook").len() == 1).then_some(())
    });
    let of_a = receiver.of("/hook")[0].clone();
    assert_eq!(of_a["model"], "a");
    let fingerprint = of_a["fingerprint"].as_str().expect("a fingerprint");
    let record = of_a["record"].as_str().expect("a record");
    let (code, said) = ask(&["ack", fingerprint, "--by", "bob", "--note", "rolling back"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, _) = ask(&["ack", "no-such-alert", "--by", "bob"]);
    assert_eq!(code, Some(1));
    std::thread::sleep(Duration::from_millis(2_500));
    service.end("KILL");
    service.start_again();
    let said = wait_for("both alerts", LIMIT, || {
        let (_, said) = ask(&["list"]);
        (said.matches("firing").count() == 2).then_some(said)
    });
    assert!(
        said.contains("acknowledged by bob") && said.contains("silenced by ann"),
        "{said}"
    );
    let (_, said) = ask(&["silence"]);
    assert!(
        said.contains("model=b") && said.contains("release"),
        "{said}"
    );
    assert_eq!(receiver.of("/hook").len(), 1);
    // Once the silence is lifted, the sink receives what still fires.
    let (code, said) = ask(&["silence", "--lift", "1"]);
    assert_eq!(code, Some(0), "{said}");
    wait_for("the other alert", LIMIT, || {
        (receiver.of("/hook").len() == 2).then_some(())
    });
    assert_eq!(receiver.of("/hook")[1]["model"], "b");
    // What happened can be told from the record, and made again.
    let state = service.state().display().to_string();
    let (code, said) = trueline(&["explain", record, "--state", &state]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("fires (warn)") && said.contains("window 6s: evaluation"),
        "{said}"
    );
    // The alert that notifications name has the newest record of its streams.
    let alert = receiver.of("/hook")[0]["fingerprint"].clone();
    let alert = alert.as_str().expect("a fingerprint");
    let (code, said) = trueline(&["explain", alert, "--state", &state]);
    assert!(code == Some(0) && said.contains("window 6s"), "{said}");
    let path = format!("/api/v1/explanations/{alert}");
    let (status, said) = service.ask("GET", &path).expect("an answer");
    assert!(status == 200 && said.contains("window 6s"), "{said}");
    let (code, said) = trueline(&["explain", "--state", &state]);
    assert!(code == Some(0) && said.lines().count() >= 2, "{said}");
    let (code, _) = trueline(&["explain", "0123", "--state", &state]);
    assert_eq!(code, Some(66));
    let (status, _) = service.ask("POST", "/api/v1/silences").expect("an answer");
    assert_eq!(
        status, 415,
        "a page of another site cannot silence anything"
    );
    let (status, _) = service
        .ask("DELETE", "/api/v1/silences/99")
        .expect("an answer");
    assert_eq!(status, 404);
}

#[test]
fn a_test_alert_goes_through_each_sink_and_what_came_back_is_said() {
    let receiver = Receiver::start(false);
    let nobody = "[[sink]]\nname = \"gone\"\nkind = \"slack\"\nurl = \"http://127.0.0.1:1/x\"\ntimeout = \"1s\"\n\
                  [[sink]]\nname = \"dry\"\nkind = \"kafka\"\ndry_run = true\n";
    let text = config("127.0.0.1:1", "t", "1s", &(webhook(&receiver) + nobody));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("try-{}", unique()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("t.toml");
    std::fs::write(&path, text.replace("LISTEN", "127.0.0.1:0")).expect("a file");
    let path = path.display().to_string();
    let (code, said) = trueline(&["alert", "test", "--config", &path]);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains("hook (webhook): accepted: 200 ok"), "{said}");
    assert!(said.contains("gone (slack): failed"), "{said}");
    assert!(said.contains("dry (kafka): accepted: dry run"), "{said}");
    let told: Vec<Value> = receiver.of("/hook");
    assert_eq!(
        (told.len(), &told[1]["status"]),
        (2, &Value::from("resolved"))
    );
    let (code, said) = trueline(&["alert", "test", "--config", &path, "--sink", "hook"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = trueline(&["alert", "test", "--config", &path, "--sink", "hok"]);
    assert!(
        code == Some(78) && said.contains("hook, gone, dry"),
        "{said}"
    );
    let _ = std::fs::remove_dir_all(dir);
}
