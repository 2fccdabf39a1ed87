//! Encryption and credentials on a real Kafka broker: its certificate is of an authority that the
//! broker's script makes, its listeners speak TLS, TLS with SCRAM-SHA-512, and TLS with
//! OAUTHBEARER.
//!
//! And to a schema registry over https whose authority is private: files served by
//! `openssl s_server`.
//!
//! Needs `--features tls`. The broker takes unsigned tokens, so what is tested of OAUTHBEARER is
//! that the token of the file reaches the broker and is taken; not a provider's signatures, and not
//! its renewal.
#![cfg(any(feature = "tls", feature = "tls-vendored"))]

use crate::support;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::broker::{Broker, unique};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use trueline::registry::{Lookup, Registry, RegistryOptions, probe};

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
window_alerts = true
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
    assert!(said.contains("certificate verify failed"), "{said}");
    assert!(said.contains("check `ca_file`"), "{said}");
    service.wait_not_ready(&["check `ca_file`"]);
    assert_eq!(service.metric("trueline_records_read_total", &[]), 0.0);
    let plain = Service::start(&config(&address, &topic, ""));
    plain.wait_not_ready(&["set [kafka.tls] or [kafka.sasl]"]);
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

/// `openssl s_server`, which serves the files of its directory over https until it is dropped.
struct HttpsFiles(std::process::Child);

impl HttpsFiles {
    /// Its certificate is for 127.0.0.1, by an authority made here; `None` where there is no
    /// openssl.
    fn start(dir: &Path, port: u16) -> Option<HttpsFiles> {
        let script = "set -e
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
                -subj '/CN=trueline test authority' -keyout ca.key -out ca.pem
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \\
                -subj '/CN=another authority' -keyout other.key -out other.pem
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
                -subj /CN=127.0.0.1 -keyout server.key -out server.csr
            echo 'subjectAltName=IP:127.0.0.1' >ext
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 \
                -extfile ext -out server.crt";
        let mut making = Command::new("sh");
        let made = making.args(["-c", script]).current_dir(dir).output();
        made.ok().filter(|o| o.status.success())?;
        let port = port.to_string();
        let arguments = "s_server -WWW -quiet -cert server.crt -key server.key -accept";
        let child = Command::new("openssl")
            .args(arguments.split(' '))
            .arg(&port)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Some(HttpsFiles(child.ok()?))
    }
}

impl Drop for HttpsFiles {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_registry_over_https_is_asked_only_where_its_authority_is_known() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("https-{}", unique()));
    std::fs::create_dir_all(dir.join("schemas/ids")).expect("a directory");
    std::fs::write(dir.join("schemas/types"), "[\"AVRO\"]").expect("a file");
    std::fs::write(dir.join("schemas/ids/1"), r#"{"schema":"\"string\""}"#).expect("a file");
    let port = support::free_port();
    let Some(_server) = HttpsFiles::start(&dir, port) else {
        let test = "a_registry_over_https_is_asked_where_its_private_authority_is_known";
        support::skip(test, "install openssl");
        return;
    };
    wait_for("the listener", LIMIT, || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let options = |ca_file| RegistryOptions {
        url: format!("https://127.0.0.1:{port}"),
        user: None,
        password: None,
        ca_file,
        timeout: Duration::from_secs(5),
    };
    let known = options(Some(dir.join("ca.pem")));
    assert_eq!(probe(&known), Ok(()));
    let registry = Registry::new(known).expect("a thread");
    let schema = wait_for("the schema", LIMIT, || match registry.get(1) {
        Lookup::Known(schema) => Some(schema),
        _ => None,
    });
    assert_eq!(schema.text, "\"string\"");
    // One file with the authority behind another one.
    let pem = |name| std::fs::read_to_string(dir.join(name)).expect("a certificate");
    let both = pem("other.pem") + &pem("ca.pem");
    std::fs::write(dir.join("both.pem"), both).expect("a file");
    assert_eq!(probe(&options(Some(dir.join("both.pem")))), Ok(()));
    // The system knows nothing of this authority.
    let stranger = probe(&options(None)).unwrap_err().to_string();
    assert!(
        stranger.to_lowercase().contains("certificate"),
        "{stranger}"
    );
    let other = dir.join("other.pem");
    assert!(probe(&options(Some(other))).is_err(), "another authority");
    let missing = probe(&options(Some(dir.join("none.pem")))).unwrap_err();
    assert!(missing.to_string().contains("none.pem"), "{missing}");
}
