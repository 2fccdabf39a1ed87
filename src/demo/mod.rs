//! The demo: a broker, producers of models with known truth, and the application, in one process.
//!
//! The demo uses the normal path: it writes a configuration ([`config`]), loads it like `run`,
//! binds the same [`App`], and reads the same [`Published`] values that HTTP serves. Only the
//! broker is not real: librdkafka's mock cluster speaks the protocol on a local port, with groups
//! and offsets, and it drops old records (see [`producer`]).
//!
//! [`models`] has the models and their truths; [`score`] compares verdicts with them.

use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::mocking::MockCluster;
use tokio::time::sleep;

use crate::app::{App, AppError, Setup, Stop, clock};
use crate::config::Config;
use crate::config::value::Outside;
use crate::judge::StreamReport;
use crate::report::table::{self, Cell, Paint};
use crate::telemetry::Published;

pub mod config;
pub mod models;
pub mod producer;
pub mod score;

use models::MODELS;
use producer::Producers;
use score::{Agreement, Score};

/// Time between two updates on a terminal; windows slide every two seconds.
const REDRAW: Duration = Duration::from_millis(500);
/// Time between two tables if there is no terminal.
const PLAIN: Duration = Duration::from_secs(5);

/// Options of the demo.
#[derive(Debug, Clone)]
pub struct Options {
    /// When to end; `None` means at a signal.
    pub length: Option<Duration>,
    /// Address of the HTTP server; port 0 means any free one.
    pub listen: SocketAddr,
    /// Events per second of each model.
    pub rate: u32,
    /// Seed of all models.
    pub seed: u64,
}

/// Runs the demo; returns whether no verdict is wrong at the end.
pub fn run(options: &Options) -> Result<bool, AppError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| AppError::Unavailable(format!("cannot start the runtime: {error}")))?;
    if let Err(error) = TcpListener::bind(options.listen) {
        // The application's own message would name options that the demo does not have.
        let listen = options.listen;
        let why = format!("cannot listen on {listen}: {error}; choose another with --port");
        return Err(AppError::Unavailable(why));
    }
    let state = Scratch::new();
    let cluster = cluster()?;
    let text = config::text(&cluster.bootstrap_servers(), options.listen, &state.0);
    let setup = setup(&text)?;
    let app = App::bind(setup)?;
    let right = runtime.block_on(show(app, &cluster.bootstrap_servers(), options));
    crate::telemetry::log::finish();
    // The mock broker stops last, after the application has left its group.
    drop(cluster);
    right
}

/// Loads the configuration of the demo like any other.
pub fn setup(text: &str) -> Result<Setup, AppError> {
    let outside = Outside::nothing();
    let loaded = Config::parse(text, "the demo's configuration", &outside).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        AppError::Internal(lines.join("\n"))
    })?;
    if let Err(error) = crate::telemetry::log::start(&loaded.log) {
        tracing::debug!(%error, "logging was started before");
    }
    Ok(Setup::of(loaded))
}

fn cluster() -> Result<MockCluster<'static, rdkafka::producer::DefaultProducerContext>, AppError> {
    let wrong = |error: rdkafka::error::KafkaError| {
        AppError::Unavailable(format!("the embedded broker does not start: {error}"))
    };
    let cluster = MockCluster::new(1).map_err(wrong)?;
    for topic in [config::SCORES, config::CLASSES] {
        cluster
            .create_topic(topic, config::PARTITIONS as i32, 1)
            .map_err(wrong)?;
    }
    Ok(cluster)
}

/// Runs the application and the producers and draws the table, until the end.
async fn show(app: App, brokers: &str, options: &Options) -> Result<bool, AppError> {
    let published = app.published();
    let address = app.address()?;
    let stop = Stop::new();
    tokio::spawn(stop.clone().on_signals());
    let start_ms = clock::now_ms();
    let producers = Producers::start(brokers, options.rate, options.seed, start_ms)
        .map_err(|error| AppError::Unavailable(format!("the producers do not start: {error}")))?;
    let application = tokio::spawn(app.run(stop.clone()));
    let mut screen = Screen::new(start_ms, address.to_string());
    let length = options.length.unwrap_or(Duration::MAX);
    let mut score = Score::new(start_ms);
    loop {
        let reports = published.reports();
        score.observe(&reports);
        screen.draw(&reports, &score, &published);
        let over =
            clock::now_ms() - start_ms >= i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        if over || stop.asked() || application.is_finished() {
            break;
        }
        sleep(REDRAW).await;
    }
    let made = producers
        .stop()
        .map_err(|error| AppError::Unavailable(format!("the producers failed: {error}")))?;
    let read = records_read(&published);
    let asked = stop.asked();
    stop.now();
    application
        .await
        .map_err(|error| AppError::Internal(format!("the application broke: {error}")))??;
    let (lines, mark) = score.summary();
    let mut text = format!(
        "\n{}\n{made} events produced, {read} read at the last count\n",
        lines.join("\n")
    );
    let judges = options.length.is_some() && !asked;
    if judges {
        text += match mark {
            Agreement::Right => "every verdict matched the truth\n",
            Agreement::Open => "no verdict differs from the truth, and some are still open\n",
            Agreement::Wrong => "a verdict differs from the truth, or none was given\n",
        };
    }
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(AppError::Unavailable(
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(!judges || mark != Agreement::Wrong),
    }
}

/// Number of records read from all sources.
fn records_read(published: &Published) -> u64 {
    let facts = published.facts();
    facts.sources.iter().map(|s| s.counters.records).sum()
}

/// Prints the table: in place on a terminal, appended elsewhere.
struct Screen {
    live: bool,
    start_ms: i64,
    address: String,
    /// When the last plain table was printed.
    printed_ms: i64,
}

impl Screen {
    fn new(start_ms: i64, address: String) -> Screen {
        Screen {
            live: io::stdout().is_terminal(),
            start_ms,
            address,
            printed_ms: start_ms - PLAIN.as_millis() as i64,
        }
    }

    fn draw(&mut self, reports: &[Arc<StreamReport>], score: &Score, published: &Published) {
        let now_ms = clock::now_ms();
        if !self.live && now_ms - self.printed_ms < PLAIN.as_millis() as i64 {
            return;
        }
        self.printed_ms = now_ms;
        let mut lines = self.head(now_ms, published);
        let heading: Vec<&str> = ["model", "truth", ""]
            .into_iter()
            .chain(table::JUDGEMENT)
            .collect();
        lines.extend(table::lines(&heading, &rows(reports, score), self.live));
        let mut text = String::new();
        if self.live {
            // Cursor home; each line clears its rest; the end clears everything below.
            text.push_str("\x1b[H");
            for line in &lines {
                text.push_str(line);
                text.push_str("\x1b[K\n");
            }
            text.push_str("\x1b[J");
        } else {
            text = lines.join("\n");
            text.push_str("\n\n");
        }
        let mut out = io::stdout();
        // A closed pipe does not end the demo: the exit code still counts.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn head(&self, now_ms: i64, published: &Published) -> Vec<String> {
        let seconds = (now_ms - self.start_ms) / 1000;
        let read = records_read(published);
        let drift = models::DRIFT_AFTER_MS / 1000;
        let drifting = match seconds < drift {
            true => format!("clicks drifts in {} s", drift - seconds),
            false => format!("clicks has been drifting for {} s", seconds - drift),
        };
        let waiting = published.missing();
        let state = match waiting.iter().next() {
            None => String::new(),
            Some((part, why)) => format!(", waiting for {part} ({why})"),
        };
        vec![
            format!("trueline demo  {seconds} s, {read} events read, {drifting}{state}"),
            format!(
                "http://{0}/metrics  http://{0}/api/v1/streams  http://{0}/",
                self.address
            ),
            String::new(),
        ]
    }
}

/// One row for each model and window, in the order of the models.
fn rows(reports: &[Arc<StreamReport>], score: &Score) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for model in &MODELS {
        let Some(report) = reports.iter().find(|r| r.id.model == model.name) else {
            rows.push(vec![
                Cell::plain(model.name),
                Cell::plain(model.truth),
                Cell::plain(""),
                Cell::painted("no window sealed yet", Paint::Dim),
            ]);
            continue;
        };
        for (index, window) in report.windows.iter().enumerate() {
            let (name, truth) = if index == 0 {
                (model.name, model.truth)
            } else {
                ("", "")
            };
            let mark = match score.agreement(model, window, config::width_ms(&window.window)) {
                Agreement::Right => Cell::painted("✓", Paint::Green),
                Agreement::Wrong => Cell::painted("✗", Paint::Red),
                Agreement::Open => Cell::painted("…", Paint::Yellow),
            };
            let mut row = vec![Cell::plain(name), Cell::plain(truth), mark];
            row.extend(table::judgement(window));
            rows.push(row);
        }
    }
    rows
}

/// A state directory that is removed at the end of the demo.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let name = format!("trueline-demo-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // A killed demo leaves the state of another broker, and in a container every demo has the
        // same process id.
        let _ = std::fs::remove_dir_all(&directory);
        Scratch(directory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files left in the temporary directory do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
