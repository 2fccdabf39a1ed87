//! `trueline alert`: alerts of a running trueline, and a trial of its sinks.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::exit::{self, Exit};
use crate::app::clock;
use crate::app::outputs::alerts::topic_sink;
use crate::config::Config;
use crate::http::client;
use crate::notify::SinkOptions;
use crate::notify::notice::Notice;
use crate::notify::notifier::{links, try_once};
use crate::report::table::{Cell, Paint, lines};

const EXAMPLES: &str = "\
Examples:
  trueline alert list                                        what fires, is pending or was resolved
  trueline alert test --config trueline.toml                 one test alert through each sink, and what came back
  trueline alert silence 'model=fraud' 'version=2*' --for 2h --note release
  trueline alert silence --lift 7
  trueline alert ack 3f1c09a2b4d5e6f7 --note 'rolling back'";

/// See alerts, silence and acknowledge them, and try the sinks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

/// Where it serves.
#[derive(Debug, clap::Args)]
struct Where {
    /// Where it serves
    #[arg(
        long,
        env = "TRUELINE_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:9464"
    )]
    url: String,
}

/// Who speaks.
#[derive(Debug, clap::Args)]
struct Who {
    /// Who you are
    #[arg(long, env = "USER", value_name = "NAME", default_value = "somebody")]
    by: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Act {
    /// List alerts, the most urgent first
    List {
        #[command(flatten)]
        at: Where,
        /// Inactive ones too
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a test alert through each configured sink and say what came back
    Test {
        /// The configuration file
        #[arg(short, long, env = "TRUELINE_CONFIG", value_name = "FILE")]
        config: PathBuf,
        /// Only this sink
        #[arg(long, value_name = "NAME")]
        sink: Option<String>,
    },
    /// Keep alerts back for a while, lift such a silence, or list them
    Silence {
        #[command(flatten)]
        at: Where,
        /// Which alerts: `label=value` or `label!=value`, `*` for any text; all must fit. None: list silences
        #[arg(value_name = "MATCHER")]
        matchers: Vec<String>,
        /// How long
        #[arg(long = "for", value_name = "TIME", default_value = "2h")]
        length: String,
        /// Lift the silence of this number
        #[arg(long, value_name = "ID", conflicts_with = "matchers")]
        lift: Option<u64>,
        #[command(flatten)]
        who: Who,
    },
    /// Say that you look after an alert that fires
    Ack {
        #[command(flatten)]
        at: Where,
        /// The alert, as `trueline alert list` shows it
        fingerprint: String,
        #[command(flatten)]
        who: Who,
    },
}

/// Does it.
pub fn run(args: &Args) -> Exit {
    let done = match &args.act {
        Act::Test { config, sink } => return test(config, sink.as_deref()),
        Act::List { at, all, json } => list(&at.url, *all, *json),
        Act::Silence {
            at, lift: Some(id), ..
        } => {
            let path = format!("/api/v1/silences/{id}");
            ask(&at.url, "DELETE", &path, "").map(|_| format!("silence {id} is lifted\n"))
        }
        Act::Silence { at, matchers, .. } if matchers.is_empty() => silences(&at.url),
        Act::Silence {
            at,
            matchers,
            length,
            who,
            ..
        } => {
            let wanted =
                json!({ "matchers": matchers, "for": length, "by": who.by, "note": who.note });
            let made = ask(&at.url, "POST", "/api/v1/silences", &wanted.to_string());
            made.map(|s| format!("silence {} until {}\n", s["id"], text(&s["until"])))
        }
        Act::Ack {
            at,
            fingerprint,
            who,
        } => {
            let path = format!("/api/v1/alerts/{}/ack", client::encode(fingerprint));
            let said = json!({ "by": who.by, "note": who.note }).to_string();
            ask(&at.url, "POST", &path, &said)
                .map(|a| format!("acknowledged by {}\n", text(&a["by"])))
        }
    };
    match done {
        Ok(said) => {
            print!("{said}");
            Exit::Ok
        }
        Err((exit, why)) => {
            eprintln!("error: {why}");
            exit
        }
    }
}

type Done<T> = Result<T, (Exit, String)>;

/// Asks a running trueline.
fn ask(url: &str, method: &str, path: &str, body: &str) -> Done<Value> {
    let unavailable = |why: String| (Exit::Unavailable, why);
    let (status, body) = client::ask_for(url, method, path, body).map_err(unavailable)?;
    let answer: Value = serde_json::from_str(&body)
        .map_err(|_| unavailable(format!("{url} is no trueline: it answers {status}")))?;
    match status {
        200 => Ok(answer),
        _ => {
            let (error, hint) = (text(&answer["error"]), text(&answer["hint"]));
            Err((Exit::Data, format!("{error}; {hint}")))
        }
    }
}

fn list(url: &str, all: bool, json: bool) -> Done<String> {
    let path = if all {
        "/api/v1/alerts?all=1"
    } else {
        "/api/v1/alerts"
    };
    let answer = ask(url, "GET", path, "")?;
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

const HEADING: [&str; 7] = [
    "alert", "stream", "state", "severity", "since", "ECE", "who",
];

fn row(alert: &Value) -> Vec<Cell> {
    let firing = alert["state"] == "firing";
    let ece = &alert["window"]["ece_l2"];
    let interval = match (ece["lower"].as_f64(), ece["upper"].as_f64()) {
        (Some(lower), Some(upper)) => format!("[{lower:.4}, {upper:.4}]"),
        _ => "-".to_owned(),
    };
    let who = match (&alert["acknowledged"], &alert["silenced"]) {
        (Value::Object(ack), _) => format!("{} looks after it", text(&ack["by"])),
        (_, Value::Object(silence)) => {
            format!(
                "silenced by {} until {}",
                text(&silence["by"]),
                text(&silence["until"])
            )
        }
        _ => "-".to_owned(),
    };
    vec![
        Cell::plain(text(&alert["fingerprint"])),
        Cell::plain(text(&alert["stream"])),
        Cell::painted(
            text(&alert["state"]),
            if firing { Paint::Red } else { Paint::Plain },
        ),
        Cell::plain(if firing {
            text(&alert["severity"])
        } else {
            "-".to_owned()
        }),
        Cell::plain(text(&alert["since"])),
        Cell::plain(interval),
        Cell::plain(who),
    ]
}

fn silences(url: &str) -> Done<String> {
    let answer = ask(url, "GET", "/api/v1/silences", "")?;
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
    value.as_str().unwrap_or("-").to_owned()
}

/// Tries each sink with an alert that says it is a test, and then with its end.
fn test(config: &std::path::Path, only: Option<&str>) -> Exit {
    let config = match Config::load(config) {
        Ok(config) => config,
        Err(problems) => {
            problems.iter().for_each(|p| eprintln!("{p}"));
            return Exit::Config;
        }
    };
    let options = &config.notify;
    let wanted = options.sinks.iter();
    let sinks: Vec<&SinkOptions> = wanted
        .filter(|s| only.is_none_or(|n| s.name == n))
        .collect();
    if sinks.is_empty() {
        let names: Vec<&str> = options.sinks.iter().map(|s| s.name.as_str()).collect();
        match only {
            Some(name) => eprintln!(
                "error: there is no sink `{name}`; there are {}",
                names.join(", ")
            ),
            None => eprintln!("error: the configuration has no [[sink]], so nobody is told"),
        }
        return Exit::Config;
    }
    let kafka = config.sources.first().map(|s| &s.kafka);
    let carriers = |sink: &SinkOptions| topic_sink(kafka, sink);
    let now_ms = clock::now_ms();
    let fires = Notice::trial(now_ms, links(options, "/"));
    let ends = fires.ended(now_ms, "the test is over");
    let mut exit = Exit::Ok;
    for sink in sinks {
        let tell = |notice| try_once(options, sink, &carriers, notice, clock::now_ms());
        let told = tell(&fires).and_then(|said| match sink.resolved {
            true => tell(&ends),
            false => Ok(said),
        });
        let kind = sink.kind.as_str();
        match told {
            Ok(said) => println!("{} ({kind}): took it: {said}", sink.name),
            Err(why) => {
                println!("{} ({kind}): did not take it: {why}", sink.name);
                exit = Exit::Unavailable;
            }
        }
    }
    exit
}
