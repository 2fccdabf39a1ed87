//! `trueline tap`: prints pairs of prediction and outcome as a running trueline counts them.

use std::io::{BufRead, Read, Write};

use super::exit::{self, Exit, Failure};
use super::service::{Service, refusal};
use crate::http::client;

const EXAMPLES: &str = "\
Examples:
  trueline tap --model fraud                      ten pairs a second, until Ctrl-C
  trueline tap --count 100 > pairs.jsonl          a hundred pairs
  trueline tap --rate 1000 | jq 'select(.segment == \"country=de\")'";

/// Print pairs of prediction and outcome as they form.
///
/// Each line is one pair in JSON: model, version, segment, id, event time, scores by view, outcome,
/// and what became of it (observed, matched, revised). A line {"missed": N}, at most one a second,
/// counts the pairs that exceeded the rate.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    #[command(flatten)]
    pub service: Service,
    /// Only pairs of this model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Pairs per second
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rate: u32,
    /// Exit after this many pairs
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
}

/// Prints pairs until the count is reached, the service ends, or Ctrl-C.
pub fn run(args: &Args) -> Exit {
    match listen(args) {
        Ok(()) => Exit::Ok,
        Err((exit, why)) => exit::fail(exit, why),
    }
}

fn listen(args: &Args) -> Result<(), Failure> {
    let unavailable = |why: String| (Exit::Unavailable, why);
    let server = args.service.server()?;
    let mut printed = 0;
    // The service closes every connection after some minutes; then a new one is opened.
    loop {
        let mut reply = server.open(&path(args)).map_err(unavailable)?;
        if reply.status != 200 {
            let mut said = String::new();
            let _ = (&mut reply.body).take(4096).read_to_string(&mut said);
            return Err(refusal(&server, reply.status, &said));
        }
        reply.patient();
        let mut line = String::new();
        let mut out = std::io::stdout().lock();
        while args.count.is_none_or(|most| printed < most) {
            line.clear();
            match reply.body.read_line(&mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(unavailable(format!("{}: {error}", server.url))),
            }
            let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            if written.is_err() {
                // A closed pipe (`tap | head`) is not a failure.
                return exit::lost(written).map_or(Ok(()), |error| {
                    let why = format!("cannot write to standard output: {error}");
                    Err(unavailable(why))
                });
            }
            printed += u64::from(!line.starts_with("{\"missed\":"));
        }
        if args.count.is_some_and(|most| printed >= most) {
            return Ok(());
        }
    }
}

fn path(args: &Args) -> String {
    let mut path = format!("/api/v1/tap?rate={}", args.rate);
    if let Some(model) = &args.model {
        path.push_str(&format!("&model={}", client::encode(model)));
    }
    path
}
