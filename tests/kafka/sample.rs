//! `check --sample` on topics as newcomers have them: what the records become, and what is wrong
//! with them.

use std::process::Command;
use std::time::Duration;

use crate::support::broker::{Broker, unique};
use crate::support::late::{MINUTE, now_ms};
use crate::support::sender::Sender;
use crate::support::service::Service;

/// The file of a source, with a service on it.
fn config(brokers: &str, source: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{}"
{source}
[[model]]
name = "fraud"
windows = ["5m"]
[http]
listen = "LISTEN"
[state]
directory = "STATE"
"#,
        unique()
    )
}

/// What `check --sample` says with this file: exit code, output and errors.
fn sample(file: &std::path::Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["check", "--sample", "--config"])
        .arg(file)
        .output()
        .expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn has(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is missing:\n{said}");
    }
}

#[test]
fn records_are_shown_field_by_field_and_rejections_with_their_reasons() {
    let name = "records_are_shown_field_by_field_and_rejections_with_their_reasons";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-sample-{}", unique());
    broker.create_topics(&[(&topic, 3)]);
    let mut sender = broker.producer();
    let at = trueline::report::moment::rfc3339(now_ms() - 7000);
    for i in 0..300 {
        let model = if i % 10 == 0 { "other" } else { "fraud" };
        let record = match i % 30 {
            29 => format!(r#"{{"model":"{model}","at":"{at}","out":{{"p":"high"}}}}"#),
            _ => format!(
                r#"{{"model":"{model}","at":"{at}","out":{{"p":0.25}},"y":{},"user":{{"country":"Côte d'Ivoire"}}}}"#,
                i % 4 == 0
            ),
        };
        sender.send(&topic, i % 3, record.as_bytes());
    }
    sender.flush();
    let source = format!(
        "[[source]]\nname = \"own\"\ntopics = [\"{topic}\"]\n\
         fields = {{ time = \"at\", time_unit = \"rfc3339\", score = \"out.p\", outcome = \"y\", segments = [\"user.country\"] }}"
    );
    // A service that runs with the same file is no hindrance.
    let mut service = Service::start(&config(&broker.bootstrap, &source));
    service.wait_ready();
    let (code, said, problems) = sample(service.config());
    assert_eq!((code, problems.as_str()), (Some(0), ""), "{said}");
    has(
        &said,
        &[
            "sample of source own",
            ": 300 records of 3 partitions",
            "260 predictions, 0 outcomes, 40 rejected",
            "10 rejected as score_not_number, the first at",
            "high",
            "30 rejected as unknown_model",
            "model          fraud",
            "segment        user.country=Côte d'Ivoire",
            &format!("time           {at}"),
            "score          0.25",
            "scores from 0.25 to 0.25",
            "fraud//user.country=Côte d'Ivoire",
        ],
    );
    // A dead letter topic that is missing does not hide what the records become.
    let topic_of_dead = format!("{topic}-dead");
    service.rewrite(|text| {
        let line = format!("name = \"own\"\ndead_letter = \"{topic_of_dead}\"");
        text.replace("name = \"own\"", &line)
    });
    let (code, said, problems) = sample(service.config());
    assert_eq!(code, Some(69), "{said}{problems}");
    has(&said, &["260 predictions, 0 outcomes, 40 rejected"]);
    has(&problems, &[&topic_of_dead, "correct `dead_letter`"]);
    service.rewrite(|text| text.replace(&format!("dead_letter = \"{topic_of_dead}\"\n"), ""));
    // A wrong path rejects everything, which is a fault.
    service.rewrite(|text| text.replace("out.p", "out.probability"));
    let (code, said, problems) = sample(service.config());
    assert_eq!(code, Some(65), "{said}");
    has(
        &problems,
        &[
            "source own: 300 of 300 rows",
            "field `out.probability` is missing",
        ],
    );
    assert_eq!(service.end("TERM"), Some(0));
}

/// Sends predictions of `delay_ms(i)` ago with an outcome each that comes now.
fn send_pairs(
    sender: &mut Sender,
    [predictions, outcomes]: [&str; 2],
    delay_ms: impl Fn(i32) -> i64,
    partition_of_outcome: impl Fn(i32) -> i32,
) {
    let now = now_ms();
    for i in 0..1000 {
        let (id, time_ms) = (format!("k-{i}"), now - delay_ms(i));
        let p = format!(r#"{{"id":"{id}","model":"fraud","time_ms":{time_ms},"score":0.5}}"#);
        sender.send(predictions, i % 4, p.as_bytes());
        let y = format!(r#"{{"id":"{id}","time_ms":{now},"outcome":{}}}"#, i % 2);
        sender.send(outcomes, partition_of_outcome(i), y.as_bytes());
    }
    sender.flush();
}

#[test]
fn late_outcomes_other_partitions_and_other_ids_are_named() {
    let name = "late_outcomes_other_partitions_and_other_ids_are_named";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topics = ["predictions", "labels"].map(|t| format!("trueline-sample-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], 4), (&topics[1], 4)]);
    let names = [topics[0].as_str(), topics[1].as_str()];
    let mut sender = broker.producer();
    // Five of a hundred come some seconds after twenty minutes, the others after one; every second
    // is elsewhere.
    let delay = |i: i32| {
        if i % 20 == 0 {
            20 * MINUTE + 5_000
        } else {
            MINUTE
        }
    };
    let elsewhere = |i: i32| if i % 2 == 0 { i % 4 } else { (i + 1) % 4 };
    send_pairs(&mut sender, names, delay, elsewhere);
    let source = format!(
        "[[source]]\nname = \"joined\"\ntopics = [\"{}\"]\nfields = {{ time = \"time_ms\", score = \"score\", id = \"id\" }}\n\
         [source.outcomes]\ntopics = [\"{}\"]\nid = \"id\"\ntime = \"time_ms\"\noutcome = \"outcome\"\nmaturity = \"50s\"",
        names[0], names[1]
    );
    let service = Service::start(&config(&broker.bootstrap, &source));
    let (code, said, problems) = sample(service.config());
    assert_eq!(code, Some(65), "{said}{problems}");
    has(
        &said,
        &[
            ": 1000 records of 4 partitions",
            "1000 predictions, 0 outcomes, 0 rejected",
            "0 predictions, 1000 outcomes, 0 rejected",
            "of 1000 predictions, 1000 are older than the maturity of 50s; 0 of these have an outcome within it",
            "of 1000 outcomes that were found, 50 % within 1m",
            "99 % within 20m",
        ],
    );
    has(
        &problems,
        &[
            "500 of 1000 outcomes are in a partition with another number",
            "murmur2_random",
            "99.9 % of the outcomes come within 20m",
            "write `maturity = \"26m\"` or more",
        ],
    );
    // With a maturity that is long enough there is only the other complaint.
    service.rewrite(|text| text.replace("50s", "30m"));
    let (_, said, problems) = sample(service.config());
    has(&problems, &["500 of 1000 outcomes are in a partition"]);
    assert!(!problems.contains("maturity ="), "{problems}");
    has(
        &said,
        &["of 1000 predictions, 0 are older than the maturity of 30m"],
    );
    // Ids that never meet.
    service.rewrite(|text| {
        text.replace("30m", "50s")
            .replace(
                "[source.outcomes]\ntopics",
                "[source.outcomes]\nmodel = \"id\"\ntopics",
            )
            .replace("id = \"id\"\ntime", "id = \"outcome\"\ntime")
    });
    let (code, said, problems) = sample(service.config());
    assert_eq!(code, Some(65), "{said}");
    has(&problems, &["none of 1000 predictions", "compare the ids"]);
}

#[test]
fn positives_alone_that_are_dropped_inverted_outcomes_and_percentages_are_named() {
    let name = "positives_alone_that_are_dropped_inverted_outcomes_and_percentages_are_named";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topics = ["predictions", "labels"].map(|t| format!("trueline-sample-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], 1), (&topics[1], 1)]);
    let (mut sender, now) = (broker.producer(), now_ms());
    for i in 0..1000 {
        let at = now - 10 * MINUTE;
        // Two of a hundred are more than 1 if they are percentages.
        let score = if i % 50 == 0 { 1.5 } else { 0.3 };
        let p = format!(
            r#"{{"id":"k-{i}","model":"fraud","time_ms":{at},"score":0.3,"percent":{score}}}"#
        );
        sender.send(&topics[0], 0, p.as_bytes());
    }
    for i in 0..120 {
        let y = format!(r#"{{"id":"k-{i}","time_ms":{now},"outcome":"Y"}}"#);
        sender.send(&topics[1], 0, y.as_bytes());
    }
    sender.flush();
    let source = format!(
        "[[source]]\nname = \"joined\"\ntopics = [\"{}\"]\nfields = {{ time = \"time_ms\", score = \"score\", id = \"id\" }}\n\
         [source.outcomes]\ntopics = [\"{}\"]\nid = \"id\"\ntime = \"time_ms\"\nmaturity = \"20m\"\n\
         outcome_map = [\"Y=1\"]\non_missing = \"drop\"",
        topics[0], topics[1]
    );
    let service = Service::start(&config(&broker.bootstrap, &source));
    // What is not older than the maturity does not say how many outcomes come.
    assert_eq!(sample(service.config()).0, Some(0));
    // Outcomes arrive ten minutes after their predictions, and a moment.
    std::thread::sleep(Duration::from_secs(12));
    service.rewrite(|text| text.replace("20m", "610s"));
    let (code, said, problems) = sample(service.config());
    assert_eq!(code, Some(65), "{said}{problems}");
    has(
        &problems,
        &[
            "120 of 1000 predictions older than the maturity have an outcome in time, 12.0 %",
            "write `on_missing = \"negative\"`",
        ],
    );
    service.rewrite(|text| text.replace("\"drop\"", "\"negative\""));
    let (code, _, problems) = sample(service.config());
    assert_eq!((code, problems.as_str()), (Some(0), ""));
    service.rewrite(|text| text.replace("Y=1", "Y=0"));
    let (code, _, problems) = sample(service.config());
    assert_eq!(code, Some(65), "{problems}");
    has(&problems, &["all 120 outcomes are negative too"]);
    service.rewrite(|text| {
        text.replace("Y=0", "Y=1")
            .replace("score = \"score\"", "score = \"percent\"")
    });
    let (code, _, problems) = sample(service.config());
    assert_eq!(code, Some(65), "{problems}");
    has(
        &problems,
        &[
            "20 of 1000 rows",
            "score_out_of_range",
            "percentages or log-odds?",
        ],
    );
}
