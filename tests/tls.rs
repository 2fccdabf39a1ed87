//! Encryption and credentials on a real Kafka broker: its certificate is of an authority that the broker's
//! script makes, its listeners speak TLS, TLS with SCRAM-SHA-512, and TLS with OAUTHBEARER.
//!
//! Needs `--features tls`. The broker takes unsigned tokens, so what is tested of OAUTHBEARER is that
//! the token of the file reaches the broker and is taken; not a provider's signatures, and not its renewal.
#![cfg(any(feature = "tls", feature = "tls-vendored"))]

mod support;

use std::path::Path;

use support::broker::{Broker, unique};
use support::service::{LIMIT, Service};
use support::wait_for;

const RECORDS: i64 = 600;

/// A broker with one topic of events, all sent over plain text.
fn stage(test: &str) -> Option<(Broker, String)> {
    let broker = Broker::own(test)?;
    let topic = format!("tls-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let mut sender = broker.producer();
    for i in 0..RECORDS {
        let (time, outcome) = (1_790_000_000_000 + i, i % 2);
        let record = format!(r#"{{"model":"m","time_ms":{time},"score":0.5,"outcome":{outcome}}}"#);
        sender.send(&topic, 0, record.as_bytes());
    }
    sender.flush();
    Some((broker, topic))
}

fn config(brokers: &str, topic: &str, security: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}-{}"
{security}
[[source]]
topics = ["{topic}"]
fields = {{ time = "time_ms", score = "score" }}
[[model]]
name = "*"
windows = [{{ width = "1h", slide = "1h" }}]
[model.alert]
stale_after = "3000d"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
"#,
        unique()
    )
}

fn tls(ca: &Path) -> String {
    format!(
        "[kafka.tls]\nenabled = true\nca_file = '{}'\n",
        ca.display()
    )
}

/// Every record comes through, and `check` has nothing to say of the brokers.
fn reads_all(config: &str) {
    let mut service = Service::start(config);
    let observed = ["disposition=\"observed\""];
    wait_for("every record", LIMIT, || {
        let n = service.metric("trueline_records_total", &observed);
        (n == RECORDS as f64).then_some(())
    });
    let (_, said) = service.check();
    assert!(!said.contains("source"), "{said}");
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn records_come_over_tls_from_a_broker_whose_authority_is_known_and_from_no_other() {
    let Some((broker, topic)) =
        stage("records_come_over_tls_from_a_broker_whose_authority_is_known_and_from_no_other")
    else {
        return;
    };
    let (address, _, ca) = broker.tls();
    reads_all(&config(&address, &topic, &tls(&ca)));
    let stranger = "[kafka.tls]\nenabled = true\n";
    let service = Service::start(&config(&address, &topic, stranger));
    let (code, said) = service.check();
    assert_eq!(code, Some(69), "{said}");
    assert!(said.to_lowercase().contains("certificate"), "{said}");
    assert_eq!(service.metric("trueline_records_read_total", &[]), 0.0);
}

#[test]
fn scram_credentials_open_the_broker_and_wrong_ones_are_told() {
    let Some((broker, topic)) = stage("scram_credentials_open_the_broker_and_wrong_ones_are_told")
    else {
        return;
    };
    let (_, address, ca) = broker.tls();
    let with = |password: &str| {
        let sasl = "[kafka.sasl]\nmechanism = \"SCRAM-SHA-512\"\nusername = \"trueline\"\n";
        let security = format!("{}{sasl}password = \"{password}\"\n", tls(&ca));
        config(&address, &topic, &security)
    };
    reads_all(&with("right"));
    let service = Service::start(&with("bad-password"));
    let said = service.wait_not_ready(&["credentials"]);
    assert!(
        !said.contains("bad-password"),
        "the password is shown: {said}"
    );
    let (code, said) = service.check();
    assert_eq!(code, Some(69), "{said}");
}

#[test]
fn a_token_from_a_file_opens_the_broker() {
    let Some((broker, topic)) = stage("a_token_from_a_file_opens_the_broker") else {
        return;
    };
    let (_, address, ca) = broker.tls();
    let file = ca.with_file_name("token");
    // {"alg":"none"} and {"sub":"trueline","iat":1700000000,"exp":4000000000}
    let token = "eyJhbGciOiJub25lIn0.\
                 eyJzdWIiOiJ0cnVlbGluZSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjo0MDAwMDAwMDAwfQ.";
    std::fs::write(&file, token).expect("the token can be written");
    let sasl = format!(
        "[kafka.sasl]\nmechanism = \"OAUTHBEARER\"\ntoken_file = '{}'\n",
        file.display()
    );
    reads_all(&config(&address, &topic, &format!("{}{sasl}", tls(&ca))));
}
