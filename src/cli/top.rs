//! `trueline top`: prints the streams of a running trueline, worst first.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::Value;

use super::exit::{self, Exit, Failure};
use super::service::{Service, error, judged, refusal};
use crate::app::clock;
use crate::http::client::Server;
use crate::report::table::{Cell, Paint, estimate, lines, printable_lines, short};

const EXAMPLES: &str = "\
Examples:
  trueline top                                 a live table, until Ctrl-C
  trueline top --once | head -20               the twenty worst, once
  trueline top --url http://monitor:9464 --model fraud --every 10s";

/// Watch the streams of a running trueline, worst first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    #[command(flatten)]
    pub service: Service,
    /// Only streams of this model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Only windows with this name
    #[arg(long, value_name = "NAME")]
    pub window: Option<String>,
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = humantime::parse_duration)]
    pub every: Duration,
    /// Print the table once and exit
    #[arg(long)]
    pub once: bool,
    /// Rows to print [default: as many as fit on a terminal, otherwise all]
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
}

/// Columns of the table.
const HEADING: [&str; 8] = [
    "stream", "window", "n", "ECE", "interval", "p-value", "verdict", "alert",
];

/// Fetches and prints the table, repeatedly or once.
pub fn run(args: &Args) -> Exit {
    let mut out = std::io::stdout();
    let terminal = out.is_terminal();
    let server = match args.service.server() {
        Ok(server) => server,
        Err((exit, why)) => return exit::fail(exit, why),
    };
    loop {
        let table = match fetch(&server, args) {
            Ok(rows) => rows,
            Err((exit, why)) if args.once || !terminal => return exit::fail(exit, why),
            // On a terminal the service may come back.
            Err((_, why)) => {
                let _ = writeln!(out, "\x1b[H\x1b[2J{}", printable_lines(&why));
                let _ = out.flush();
                std::thread::sleep(args.every.max(Duration::from_millis(200)));
                continue;
            }
        };
        let mut text = String::new();
        if terminal && !args.once {
            text.push_str("\x1b[H\x1b[2J");
        }
        let fit = args.rows.or_else(|| (terminal && !args.once).then(height));
        text.push_str(&page(
            &server.url,
            &table,
            fit.unwrap_or(usize::MAX),
            terminal,
        ));
        if args.once {
            exit::print(&text);
            if table.is_empty() && (args.model.is_some() || args.window.is_some()) {
                let model = args.model.iter().map(|m| format!(" of model `{m}`"));
                let window = args.window.iter().map(|w| format!(" named `{w}`"));
                let what: String = window.chain(model).collect();
                return exit::fail(Exit::Verdict, format_args!("there is no window{what}"));
            }
            return Exit::Ok;
        }
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if written.is_err() {
            // A closed pipe (`top | head`) is not a failure.
            return exit::lost(written).map_or(Exit::Ok, |error| {
                let why = format_args!("cannot write the table: {error}");
                exit::fail(Exit::Unavailable, why)
            });
        }
        std::thread::sleep(args.every.max(Duration::from_millis(200)));
    }
}

/// Rows that fit on the terminal; if its height is unknown, rows that fit on 24 lines.
fn height() -> usize {
    let lines = std::env::var("LINES").ok().and_then(|n| n.parse().ok());
    lines.unwrap_or(24usize).saturating_sub(4).max(1)
}

/// One window of one stream, as a row with its sort key.
struct Row {
    /// State of the stream's alert, verdict, lower end of the interval, negated p-value. The worst
    /// row has the greatest value.
    badness: (u8, u8, f64, f64),
    cells: Vec<Cell>,
}

fn fetch(server: &Server, args: &Args) -> Result<Vec<Row>, Failure> {
    let unavailable = |why: String| (Exit::Unavailable, why);
    let (status, body) = server.get("/api/v1/streams").map_err(unavailable)?;
    let answer: Value = match (status, serde_json::from_str(&body)) {
        (200, Ok(answer)) => answer,
        _ => return Err(refusal(server, status, &body)),
    };
    Ok(rows(&judged(answer)?, args, clock::now_ms()))
}

fn rows(answer: &Value, args: &Args, now_ms: i64) -> Vec<Row> {
    let none = Vec::new();
    let mut rows = Vec::new();
    for stream in answer["streams"].as_array().unwrap_or(&none) {
        if args.model.as_ref().is_some_and(|m| stream["model"] != **m) {
            continue;
        }
        for window in stream["windows"].as_array().unwrap_or(&none) {
            if args.window.as_ref().is_none_or(|w| window["window"] == **w) {
                rows.push(row(stream, window, now_ms));
            }
        }
    }
    rows.sort_by(|a, b| {
        let (a, b) = (&a.badness, &b.badness);
        let numbers = b.2.total_cmp(&a.2).then(b.3.total_cmp(&a.3));
        (b.0, b.1).cmp(&(a.0, a.1)).then(numbers)
    });
    rows
}

fn row(stream: &Value, window: &Value, now_ms: i64) -> Row {
    let text = |v: &Value| v.as_str().unwrap_or("-").to_owned();
    let verdict = text(&window["verdict"]);
    let alert = text(&stream["alert"]["state"]);
    let (paint, bad) = match verdict.as_str() {
        "miscalibrated" => (Paint::Red, 2),
        "calibrated" => (Paint::Green, 0),
        _ => (Paint::Yellow, 1),
    };
    let (firing, alert) = match alert.as_str() {
        "firing" => (2, text(&stream["alert"]["severity"])),
        "pending" => (1, alert),
        _ => (0, alert),
    };
    let shown = match window["reason"].as_str() {
        Some(reason) => format!("{verdict}({reason})"),
        None => verdict,
    };
    let error = error(window);
    let p = window["p_value"].as_f64();
    let lower = window["ece_l2"]["lower"].as_f64().unwrap_or(0.0);
    let dash = || "-".to_owned();
    let cells = vec![
        Cell::plain(text(&stream["stream"])),
        Cell::plain(text(&window["window"])),
        Cell::plain(window["n"].to_string()),
        Cell::plain(error.map_or_else(dash, |e| estimate(&e))),
        Cell::plain(error.map_or_else(dash, |e| e.brief())),
        Cell::plain(p.map_or_else(dash, short)),
        Cell::painted(shown, paint),
        Cell::painted(alert, if firing > 0 { Paint::Red } else { Paint::Dim }),
        Cell::plain(age(window, now_ms)),
    ];
    Row {
        badness: (firing, bad, lower, -p.unwrap_or(1.0)),
        cells,
    }
}

/// Age of the newest data of the verdict, by this machine's clock.
fn age(window: &Value, now_ms: i64) -> String {
    let end_ms = window["end_ms"].as_i64().unwrap_or(0);
    if end_ms == 0 {
        return "-".to_owned();
    }
    let seconds = now_ms.saturating_sub(end_ms).max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn page(url: &str, rows: &[Row], most: usize, colour: bool) -> String {
    let mut heading = HEADING.to_vec();
    heading.push("age");
    let shown: Vec<Vec<Cell>> = rows.iter().take(most).map(|r| r.cells.clone()).collect();
    let mut text = format!("{url}  {} windows", rows.len());
    if rows.len() > shown.len() {
        text.push_str(&format!(", the {} worst", shown.len()));
    }
    text.push('\n');
    for line in lines(&heading, &shown, colour) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn args() -> Args {
        Args {
            service: Service::default(),
            model: None,
            window: None,
            every: Duration::ZERO,
            once: true,
            rows: None,
        }
    }

    fn stream(id: &str, alert: &str, verdict: &str, lower: f64) -> Value {
        let alert = json!({"state": alert, "severity": "page"});
        json!({"stream": id, "alert": alert, "windows": [window(verdict, lower)]})
    }

    fn window(verdict: &str, lower: f64) -> Value {
        json!({
            "window": "5m", "n": 100, "verdict": verdict, "reason": null, "alert": "inactive", "end_ms": 1_000_000,
            "ece_l2": {"lower": lower},
            "error": {
                "quantity": "ece_l2", "estimate": 0.1, "lower": lower, "upper": 0.3, "contains_zero": false,
                "confidence": 0.9, "most": 0.05,
            },
            "p_value": 0.02,
        })
    }

    #[test]
    fn firing_alerts_come_first_then_worse_verdicts() {
        let answer = json!({"streams": [
            stream("good", "inactive", "calibrated", 0.0),
            stream("bad", "pending", "miscalibrated", 0.2),
            stream("worse", "firing", "miscalibrated", 0.1),
            stream("worst", "firing", "miscalibrated", 0.15),
            {"stream": "young", "alert": {"state": "inactive", "severity": "warn"}, "windows": [json!({
                "window": "5m", "n": 0, "verdict": "undecided", "reason": "too_few", "alert": "inactive", "end_ms": 0,
            })]},
        ]});
        let rows = rows(&answer, &args(), 1_060_000);
        let first = |r: &Row| r.cells[0].text.clone();
        let order: Vec<String> = rows.iter().map(first).collect();
        assert_eq!(order, ["worst", "worse", "bad", "young", "good"]);
        let text = page("http://x:1", &rows, 4, false);
        assert!(
            text.contains("the 4 worst") && !text.contains("good"),
            "{text}"
        );
        assert!(
            text.contains("[0.1500, 0.3000]") && text.contains("60s"),
            "{text}"
        );
        assert!(text.contains("undecided(too_few)"), "{text}");
    }
}
