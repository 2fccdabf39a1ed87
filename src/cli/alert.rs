//! `trueline alert`: lists, silences, acknowledges and closes alerts of a running trueline, marks
//! deployments, and tests its sinks.

use std::time::Duration;

use serde_json::{Value, json};

use super::config_file::ConfigFile;
use super::exit::{self, Exit, Failure};
use super::service::{Service, error, judged, refusal};
use crate::alert::Matcher;
use crate::app::clock;
use crate::app::outputs::alert_topic::topic_sink;
use crate::http::client;
use crate::judge::Quantity;
use crate::notify::SinkOptions;
use crate::notify::notification::Notification;
use crate::notify::notifier::{links, try_once};
use crate::report::table::{Cell, Paint, lines, printable};

const EXAMPLES: &str = "\
Examples:
  trueline alert list                                     firing, pending and resolved alerts
  trueline alert test --config trueline.toml              send a test alert through each sink
  trueline alert silence 'model=fraud' 'version=2*' --for 2h --note release
  trueline alert silence --lift 7
  trueline alert ack fraud --note 'rolling back'
  trueline alert close fraud --note 'rolled back to v3'   it ends now, and rests on new data only
  trueline alert deployed fraud --version 4               its alerts rest on new data only";

/// List, silence, acknowledge and close alerts, mark deployments, and test the sinks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

/// Who acts, and why.
#[derive(Debug, clap::Args)]
struct Author {
    /// Your name
    #[arg(long, env = "USER", value_name = "NAME", default_value = "unknown")]
    by: String,
    /// Your reason
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
}

/// What is done to one alert.
#[derive(Debug, clap::Args)]
struct OneAlert {
    #[command(flatten)]
    at: Service,
    /// The alert, by name or fingerprint as `trueline alert list` prints them, or one of its
    /// streams, as it is or percent-encoded like the `id`s of the API
    alert: String,
    #[command(flatten)]
    author: Author,
}

impl OneAlert {
    /// Sends the request about this alert; `what` ends the path.
    fn ask(&self, what: &str) -> Reply<Value> {
        let path = format!("/api/v1/alerts/{}/{what}", client::encode(&self.alert));
        let said = json!({ "by": self.author.by, "note": self.author.note });
        ask(&self.at, "POST", &path, &said.to_string())
    }
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum Act {
    /// List alerts, the most urgent first
    List {
        #[command(flatten)]
        at: Service,
        /// Include inactive alerts
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a test alert through each configured sink and print the reply
    Test {
        #[command(flatten)]
        file: ConfigFile,
        /// Only this sink
        #[arg(long, value_name = "NAME")]
        sink: Option<String>,
    },
    /// Silence alerts for a while, lift a silence, or list silences
    Silence {
        #[command(flatten)]
        at: Service,
        /// Alerts to silence: `label=value` or `label!=value`, where `*` matches any text; all must
        /// match. Without matchers, silences are listed
        #[arg(value_name = "MATCHER", value_parser = matcher)]
        matchers: Vec<Matcher>,
        /// Length of the silence
        #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = humantime::parse_duration)]
        length: Duration,
        /// Lift the silence with this number
        #[arg(long, value_name = "ID", conflicts_with = "matchers")]
        lift: Option<u64>,
        #[command(flatten)]
        author: Author,
    },
    /// Acknowledge a firing alert
    Ack(OneAlert),
    /// End an alert because the fault is fixed; data from before now no longer count
    Close(OneAlert),
    /// Mark that a model was deployed: its alerts use only later data, and notifications name the
    /// deployment
    Deployed {
        #[command(flatten)]
        at: Service,
        /// The model
        model: String,
        /// Only this version
        #[arg(long)]
        version: Option<String>,
        #[command(flatten)]
        author: Author,
    },
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Exit {
    let reply = match &args.act {
        Act::Test { file, sink } => return test(&file.config, sink.as_deref()),
        Act::List { at, all, json } => list(at, *all, *json),
        Act::Silence {
            at, lift: Some(id), ..
        } => {
            let path = format!("/api/v1/silences/{id}");
            ask(at, "DELETE", &path, "").map(|_| format!("silence {id} is lifted\n"))
        }
        Act::Silence { at, matchers, .. } if matchers.is_empty() => silences(at),
        Act::Silence {
            at,
            matchers,
            length,
            author,
            ..
        } => {
            let length = humantime::format_duration(*length).to_string();
            let wanted = json!({ "matchers": matchers, "for": length, "by": author.by, "note": author.note });
            let made = ask(at, "POST", "/api/v1/silences", &wanted.to_string());
            made.map(|s| format!("silence {} until {}\n", s["id"], text(&s["until"])))
        }
        Act::Ack(one) => one
            .ask("ack")
            .map(|a| format!("acknowledged by {}\n", text(&a["by"]))),
        Act::Close(one) => one
            .ask("close")
            .map(|_| format!("closed {}\n", printable(&one.alert))),
        Act::Deployed {
            at,
            model,
            version,
            author,
        } => {
            let path = format!("/api/v1/models/{}/deployments", client::encode(model));
            let said = json!({ "version": version, "by": author.by, "note": author.note });
            ask(at, "POST", &path, &said.to_string())
                .map(|d| format!("deployment of {} at {}\n", printable(model), text(&d["at"])))
        }
    };
    match reply {
        Ok(text) => {
            exit::print(&text);
            Exit::Ok
        }
        Err((exit, why)) => exit::fail(exit, why),
    }
}

/// Parses a matcher of the command line.
fn matcher(text: &str) -> Result<Matcher, String> {
    let matcher: Matcher = text.parse()?;
    matcher.possible().map(|()| matcher)
}

type Reply<T> = Result<T, Failure>;

/// Sends a request to a running trueline, and returns its answer.
fn ask(at: &Service, method: &str, path: &str, body: &str) -> Reply<Value> {
    let unavailable = |why: String| (Exit::Unavailable, why);
    let server = at.server()?;
    let (status, body) = server.ask(method, path, body).map_err(unavailable)?;
    match (status, serde_json::from_str(&body)) {
        (200, Ok(answer)) => Ok(answer),
        _ => Err(refusal(&server, status, &body)),
    }
}

fn list(at: &Service, all: bool, json: bool) -> Reply<String> {
    let path = if all {
        "/api/v1/alerts?all=1"
    } else {
        "/api/v1/alerts"
    };
    let answer = judged(ask(at, "GET", path, "")?)?;
    if json {
        return Ok(format!("{answer:#}\n"));
    }
    let alerts = answer["alerts"].as_array().cloned().unwrap_or_default();
    if alerts.is_empty() {
        return Ok("no alerts\n".to_owned());
    }
    let rows: Vec<Vec<Cell>> = alerts.iter().map(row).collect();
    Ok(table(&HEADING, &rows))
}

const HEADING: [&str; 8] = [
    "fingerprint",
    "alert",
    "state",
    "severity",
    "since",
    "streams",
    "worst error",
    "who",
];

fn row(alert: &Value) -> Vec<Cell> {
    let firing = alert["state"] == "firing";
    let streams = alert["streams"].as_array().map_or(0, Vec::len);
    let worst = error(&alert["streams"][0]["window"]).map(|e| match e.quantity {
        Quantity::EceL2 => e.brief(),
        other => format!("{} {}", other.short(), e.brief()),
    });
    let who = match (&alert["acknowledged"], &alert["silenced"]) {
        (Value::Object(ack), _) => format!("acknowledged by {}", text(&ack["by"])),
        (_, Value::Object(silence)) => {
            let (by, until) = (text(&silence["by"]), text(&silence["until"]));
            format!("silenced by {by} until {until}")
        }
        _ => "-".to_owned(),
    };
    let (paint, severity) = match firing {
        true => (Paint::Red, text(&alert["severity"])),
        false => (Paint::Plain, "-".to_owned()),
    };
    vec![
        Cell::plain(text(&alert["fingerprint"])),
        Cell::plain(text(&alert["alert"])),
        Cell::painted(text(&alert["state"]), paint),
        Cell::plain(severity),
        Cell::plain(text(&alert["since"])),
        Cell::plain(streams.to_string()),
        Cell::plain(worst.unwrap_or("-".to_owned())),
        Cell::plain(who),
    ]
}

fn silences(at: &Service) -> Reply<String> {
    let answer = ask(at, "GET", "/api/v1/silences", "")?;
    let all = answer["silences"].as_array().cloned().unwrap_or_default();
    if all.is_empty() {
        return Ok("no silences\n".to_owned());
    }
    let row = |s: &Value| {
        let matchers = s["matchers"].as_array().cloned().unwrap_or_default();
        let matchers: Vec<String> = matchers.iter().map(text).collect();
        vec![
            Cell::plain(s["id"].to_string()),
            Cell::plain(matchers.join(" ")),
            Cell::plain(text(&s["until"])),
            Cell::plain(text(&s["by"])),
            Cell::plain(text(&s["note"])),
        ]
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
    Ok(table(&["id", "alerts", "until", "by", "note"], &rows))
}

fn table(heading: &[&str], rows: &[Vec<Cell>]) -> String {
    use std::io::IsTerminal;
    let colour = std::io::stdout().is_terminal();
    let mut text = lines(heading, rows, colour).join("\n");
    text.push('\n');
    text
}

fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or("-")).into_owned()
}

/// Sends each sink a firing alert that is marked as a test, and then its resolution.
fn test(config: &std::path::Path, only: Option<&str>) -> Exit {
    let config = match exit::load(config) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let options = &config.notify;
    let wanted = options.sinks.iter();
    let sinks: Vec<&SinkOptions> = wanted
        .filter(|s| only.is_none_or(|n| s.name == n))
        .collect();
    if sinks.is_empty() {
        let names: Vec<&str> = options.sinks.iter().map(|s| s.name.as_str()).collect();
        let why = match only {
            Some(name) => format!("there is no sink `{name}`; there are {}", names.join(", ")),
            None => "the configuration has no [[sink]], so nobody is notified".to_owned(),
        };
        return exit::fail(Exit::Config, why);
    }
    let kafka = config.sources.first().map(|s| &s.kafka);
    let carriers = |sink: &SinkOptions| topic_sink(kafka, sink);
    let now_ms = clock::now_ms();
    let fires = Notification::trial(now_ms, links(options, "/"));
    let ends = fires.resolved(now_ms, "the test is over");
    let mut exit = Exit::Ok;
    for sink in sinks {
        let send = |notice| try_once(options, sink, &carriers, notice, clock::now_ms());
        let sent = send(&fires).and_then(|reply| match sink.resolved {
            true => send(&ends),
            false => Ok(reply),
        });
        let kind = sink.kind.as_str();
        match sent {
            Ok(reply) => {
                exit::print_plain_line(format_args!("{} ({kind}): accepted: {reply}", sink.name))
            }
            Err(why) => {
                exit::print_plain_line(format_args!("{} ({kind}): failed: {why}", sink.name));
                exit = Exit::Unavailable;
            }
        }
    }
    exit
}
