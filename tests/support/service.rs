//! A `trueline run` process, asked over HTTP as its users do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::broker::{send_signal, unique};
use super::scrape::{Scrape, assert_conserved};
use super::{free_port, wait_for};

/// How long anything may take before a test calls it lost.
pub const LIMIT: Duration = Duration::from_secs(90);

/// Where a process answers and keeps its state, for a configuration that does not say it.
const OWN: &str = r#"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "1s"
"#;

/// The process and where it answers.
pub struct Service {
    child: Option<Child>,
    config: PathBuf,
    log: PathBuf,
    address: String,
    env: Vec<(&'static str, String)>,
    /// What its state is on, if that is a disk of its own.
    disk: Option<Disk>,
}

/// A file system in memory of this size, for one process and its end.
struct Disk {
    size: &'static str,
    folder: PathBuf,
}

impl Disk {
    /// A command that runs with the disk in place; in a namespace of its own, since users may mount
    /// nothing elsewhere.
    fn command(&self) -> Command {
        let mounted =
            "mkdir -p \"$0\" && mount -t tmpfs -o size=\"$1\" tmpfs \"$0\" && shift && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", mounted]);
        command.arg(&self.folder).arg(self.size);
        command
    }
}

impl Service {
    /// Writes the configuration, in which `STATE` and `LISTEN` are filled in, and starts the
    /// process. Where it has no section [state] it gets both sections here.
    pub fn start(config: &str) -> Service {
        Service::start_with(config, Vec::new())
    }

    /// The same with variables in its environment.
    pub fn start_with(config: &str, env: Vec<(&'static str, String)>) -> Service {
        let mut service = Service::new(config, env);
        service.start_again();
        service
    }

    /// The same with its state on a disk of this size; `None` where this user cannot have one.
    pub fn start_on_disk(config: &str, size: &'static str) -> Option<Service> {
        let mut service = Service::new(config, Vec::new());
        let folder = service.config.with_file_name("state");
        let disk = Disk { size, folder };
        let tried = disk.command().arg("true").output();
        tried.ok().filter(|tried| tried.status.success())?;
        service.disk = Some(disk);
        service.start_again();
        Some(service)
    }

    fn new(config: &str, env: Vec<(&'static str, String)>) -> Service {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("service-{}", unique()));
        std::fs::create_dir_all(&dir).expect("a directory for the service");
        let address = format!("127.0.0.1:{}", free_port());
        let state = dir.join("state").display().to_string();
        let own = if config.contains("[state]") { "" } else { OWN };
        let text = format!("{config}{own}").replace("STATE", &state);
        let text = text.replace("LISTEN", &address);
        let path = dir.join("trueline.toml");
        std::fs::write(&path, text).expect("the configuration can be written");
        Service {
            child: None,
            config: path,
            log: dir.join("log"),
            address,
            env,
            disk: None,
        }
    }

    /// Starts it with the configuration and state that are there.
    pub fn start_again(&mut self) {
        self.start_again_with(&[]);
    }

    /// The same with more arguments of `trueline run`.
    pub fn start_again_with(&mut self, args: &[&str]) {
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.log);
        let log = log.expect("the log can be opened");
        let program = env!("CARGO_BIN_EXE_trueline");
        let mut command = match &self.disk {
            Some(disk) => disk.command(),
            None => Command::new(program),
        };
        if self.disk.is_some() {
            command.arg(program);
        }
        let child = command
            .args(["run", "--config"])
            .arg(&self.config)
            .args(args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("two handles on the log"))
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("trueline starts"));
    }

    /// Sends a signal and waits for the end; returns the exit code, if it had one. Fails if it has
    /// ended before: a test that expects that waits for it with [`Service::wait_end`].
    pub fn end(&mut self, signal: &str) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        let before = child.try_wait().expect("a child");
        assert!(
            before.is_none(),
            "it had ended by itself before {signal}, {before:?}:\n{}",
            self.log_tail()
        );
        // Every run is looked at, whatever its test looks at.
        let _ = self.scrape();
        send_signal(&child.id().to_string(), signal);
        wait_for("the service to end", LIMIT, || {
            child.try_wait().expect("a child")
        })
        .code()
    }

    /// Waits until it ends by itself; returns the exit code, if it had one.
    pub fn wait_end(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        let ended = wait_for("the service to end", LIMIT, || {
            child.try_wait().expect("a child")
        });
        ended.code()
    }

    /// Its configuration file.
    pub fn config(&self) -> &std::path::Path {
        &self.config
    }

    /// Changes the text of its configuration file.
    pub fn rewrite(&self, change: impl FnOnce(String) -> String) {
        let text = std::fs::read_to_string(&self.config).expect("the configuration");
        std::fs::write(&self.config, change(text)).expect("the configuration can be written");
    }

    /// Sends a signal and goes on.
    pub fn signal(&self, signal: &str) {
        send_signal(&self.id().to_string(), signal);
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// From now on it may have no more than so many open files and connections.
    pub fn limit_descriptors(&self, n: usize) {
        let limit = format!("--nofile={n}:");
        let pid = self.id().to_string();
        let limited = Command::new("prlimit")
            .args([&limit, "--pid", &pid])
            .status();
        assert!(limited.expect("prlimit").success());
    }

    /// A connection on which nothing is asked.
    pub fn connect(&self) -> Option<TcpStream> {
        TcpStream::connect(&self.address).ok()
    }

    /// The most memory that it has had resident so far, bytes.
    pub fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("the status of a process");
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB"));
        let kib: Option<u64> = kib.and_then(|n| n.trim().parse().ok());
        kib.expect("a peak") * 1024
    }

    /// Where it serves, as its verbs take it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The directory of its snapshots.
    pub fn state(&self) -> PathBuf {
        self.config.with_file_name("state")
    }

    /// Waits until it has logged a line that holds all of `words`, and returns the line.
    pub fn wait_for_line(&self, words: &[&str]) -> String {
        wait_for(&format!("a line with {words:?}"), LIMIT, || {
            let text = std::fs::read_to_string(&self.log).unwrap_or_default();
            let line = |line: &&str| words.iter().all(|word| line.contains(word));
            text.lines().find(line).map(str::to_owned)
        })
    }

    /// How many lines it has logged that hold these words.
    pub fn lines_with(&self, words: &str) -> usize {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter(|line| line.contains(words)).count()
    }

    /// Waits until /ready says 503 with all of `words`, and returns what it says.
    pub fn wait_not_ready(&self, words: &[&str]) -> String {
        let what = format!("/ready to say {words:?}");
        let (_, said) = wait_for(&what, LIMIT, || {
            let (status, said) = self.get("/ready")?;
            Some((status, said)).filter(|(status, said)| {
                *status == 503 && words.iter().all(|word| said.contains(word))
            })
        });
        said
    }

    /// Runs `trueline check` on the configuration; answers the exit code and what it printed on
    /// standard error. The address is left to the process that runs.
    pub fn check(&self) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["check", "--timeout", "5s", "--config"])
            .arg(&self.config)
            .output()
            .expect("trueline starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    }

    /// Body and status of a GET; `None` while nobody answers.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        self.ask("GET", path)
    }

    /// Body and status of a request; `None` while nobody answers.
    pub fn ask(&self, method: &str, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .ok()?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: trueline\r\nX-Requested-By: test\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        if head.starts_with("HTTP/1.1 200") {
            assert_conserved(path, body);
        }
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// Body and status of a POST of JSON with more headers; `None` while nobody answers.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let timeout = Some(Duration::from_secs(10));
        stream.set_read_timeout(timeout).ok()?;
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: trueline\r\nContent-Length: {}\r\nConnection: close\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        // One that is refused before its body was read hangs up.
        let _ = stream.write_all(format!("{request}\r\n{body}").as_bytes());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// What `/metrics` says; `None` while nobody answers.
    pub fn scrape(&self) -> Option<Scrape> {
        let (status, text) = self.get("/metrics")?;
        (status == 200).then(|| Scrape::new(text))
    }

    /// Waits until /ready says 200.
    pub fn wait_ready(&self) {
        wait_for("/ready", LIMIT, || {
            self.get("/ready").filter(|(status, _)| *status == 200)
        });
    }

    /// Waits until predictions are on disk. Once their windows close, what is past its lateness is
    /// on none.
    pub fn wait_spilled(&self) {
        let many = |scrape: &Scrape| scrape.sum("trueline_predictions_spilled", &[]) > 1000.0;
        wait_for("predictions on disk", LIMIT, || {
            self.scrape().filter(many).map(|_| ())
        });
    }

    /// All streams, as the API shows them.
    pub fn streams(&self) -> Option<Vec<Value>> {
        let (_, body) = self.get("/api/v1/streams")?;
        let streams: Value = serde_json::from_str(&body).expect("the API answers JSON");
        streams["streams"].as_array().cloned()
    }

    /// The entry of a model and window in /api/v1/streams, when there is one.
    pub fn window(&self, model: &str, window: &str) -> Option<Value> {
        let streams = self.streams()?;
        let stream = streams.iter().find(|s| s["model"] == model)?;
        stream["windows"]
            .as_array()?
            .iter()
            .find(|w| w["window"] == window)
            .cloned()
    }

    /// Waits until the window of a model holds `n` events, and returns it.
    pub fn wait_for_n(&self, model: &str, window: &str, n: u64) -> Value {
        let mut last = Value::Null;
        let what = format!("{n} events in {window} of {model}");
        let start = std::time::Instant::now();
        loop {
            if let Some(found) = self.window(model, window) {
                if found["n"] == n {
                    return found;
                }
                last = found;
            }
            assert!(
                start.elapsed() < LIMIT,
                "waited in vain for {what}; last seen: {last}\n{}",
                self.log_tail()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sum of the samples of a metric whose labels contain all of `labels`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let (_, text) = self.get("/metrics").unwrap_or_default();
        let rows = text.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        rows.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Records of all sources that `/api/v1/sources` counts as `what`, those of earlier processes
    /// included; `None` while it does not answer.
    pub fn counted(&self, what: &str) -> Option<f64> {
        let (_, body) = self.get("/api/v1/sources")?;
        let body: serde_json::Value = serde_json::from_str(&body).ok()?;
        let sources = body["sources"].as_array()?.iter();
        Some(sources.filter_map(|source| source[what].as_f64()).sum())
    }

    /// The last lines it logged, for the message of a failing test.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!(
                "log of the service ({}):\n{}",
                self.log.display(),
                self.log_tail()
            );
        }
    }
}
