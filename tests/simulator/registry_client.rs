//! The client of the schema registry by itself, in virtual time: for how long an id that is
//! answered badly is waited for.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trueline::registry::{
    ABSENT_FOR, Connection, DOUBTFUL_FOR, FetchError, Fetches, Host, Lookup, PAUSE_MAX, Registry,
    RegistryOptions, UNANSWERED_FOR,
};

use super::client::lock;
use super::clock;

type Answered = Result<(u16, String), String>;
/// What every id is answered with at this time.
type Answer = fn(Duration) -> Answered;

/// A registry that answers every id in the same way at a time, and the thread of its client.
#[derive(Clone)]
struct Server {
    answer: Answer,
    /// Whether it is down at a time.
    down: fn(Duration) -> bool,
    /// Whether it cannot look into its store.
    storeless: fn(Duration) -> bool,
    fetches: Arc<Mutex<Option<Box<dyn Fetches>>>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a registry")
    }
}

impl Connection for Server {
    fn get(&self, url: &str) -> Answered {
        clock::sleep(Duration::from_millis(5));
        match (self.down)(clock::now()) {
            true => Err("refused".to_owned()),
            false if url.ends_with("/schemas/types") => Ok((200, "[]".to_owned())),
            false if url.ends_with("/config") && !(self.storeless)(clock::now()) => {
                Ok((200, "{}".to_owned()))
            }
            false if url.ends_with("/config") => status(500),
            false => (self.answer)(clock::now()),
        }
    }
}

impl Host for Server {
    fn run(&self, fetches: Box<dyn Fetches>) -> io::Result<()> {
        *lock(&self.fetches) = Some(fetches);
        Ok(())
    }

    fn connect(&self, _: &RegistryOptions) -> Result<Box<dyn Connection>, FetchError> {
        Ok(Box::new(self.clone()))
    }
}

impl Server {
    fn new(answer: Answer) -> (Server, Registry) {
        Server::that_fails(answer, |_| false)
    }

    fn that_fails(answer: Answer, down: fn(Duration) -> bool) -> (Server, Registry) {
        Server::with_faults(answer, down, |_| false)
    }

    fn with_faults(
        answer: Answer,
        down: fn(Duration) -> bool,
        storeless: fn(Duration) -> bool,
    ) -> (Server, Registry) {
        clock::set(Duration::ZERO, 0);
        let fetches = Arc::default();
        let server = Server {
            answer,
            down,
            storeless,
            fetches,
        };
        let options = RegistryOptions {
            url: "http://registry".to_owned(),
            user: None,
            password: None,
            ca_file: None,
            timeout: Duration::from_secs(5),
        };
        let registry = Registry::on(Arc::new(server.clone()), options);
        (server, registry.expect("a client"))
    }

    /// Lets time pass while the client does what is due.
    fn pass(&self, time: Duration) {
        let until = clock::now() + time;
        let mut fetches = lock(&self.fetches);
        let fetches = fetches.as_mut().expect("the client runs");
        while let Some(due) = fetches.due_in()
            && clock::now() + due < until
        {
            clock::sleep(due);
            fetches.step();
        }
        clock::sleep(until.saturating_sub(clock::now()));
    }

    /// For how long an id is waited for, up to a second.
    fn waits(&self, registry: &Registry, id: u32) -> Duration {
        let since = clock::now();
        while matches!(registry.get(id), Lookup::Waiting) {
            self.pass(Duration::from_secs(1));
            assert!(clock::now() - since < Duration::from_secs(3600), "for ever");
        }
        clock::now() - since
    }
}

fn status(code: u16) -> Answered {
    Ok((code, String::new()))
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_id_that_alone_is_answered_badly_is_waited_for_once_and_not_for_ever() {
    let answers: [(Answer, Duration); 5] = [
        (|_| status(422), Duration::ZERO),
        (|_| status(500), DOUBTFUL_FOR),
        (|_| status(408), UNANSWERED_FOR),
        (|_| status(429), UNANSWERED_FOR),
        (|_| Err("timeout".to_owned()), UNANSWERED_FOR),
    ];
    for (answer, holds) in answers {
        let (server, registry) = Server::new(answer);
        let waited = server.waits(&registry, 7);
        assert!(waited >= holds, "{waited:?} of {holds:?}");
        assert!(
            waited <= holds + PAUSE_MAX + SECOND,
            "{waited:?} of {holds:?}"
        );
        // Fetched again, it is still so.
        server.pass(ABSENT_FOR);
        assert!(server.waits(&registry, 7) <= SECOND);
    }
}

#[test]
fn ids_that_are_fetched_ahead_are_waited_for_together() {
    let (server, registry) = Server::new(|_| status(500));
    (1..20).for_each(|id| registry.fetch_ahead(id));
    let all: Duration = (0..20).map(|id| server.waits(&registry, id)).sum();
    assert!(all <= DOUBTFUL_FOR + PAUSE_MAX * 2, "{all:?}");
}

#[test]
fn an_outage_is_not_held_against_an_id_that_has_a_schema() {
    let (server, registry) = Server::that_fails(
        |_| Ok((200, r#"{"schema": "\"string\""}"#.to_owned())),
        |at| at < Duration::from_secs(1800),
    );
    server.waits(&registry, 7);
    assert!(clock::now() >= Duration::from_secs(1800));
    assert!(matches!(registry.get(7), Lookup::Known(_)));
    // Nor is an outage of the registry's store: it answers 5xx to all that needs the store.
    let (server, registry) = Server::with_faults(
        |at| match at < Duration::from_secs(1800) {
            true => status(500),
            false => Ok((200, r#"{"schema": "\"string\""}"#.to_owned())),
        },
        |_| false,
        |at| at < Duration::from_secs(1800),
    );
    server.waits(&registry, 7);
    assert!(clock::now() >= Duration::from_secs(1800));
    assert!(matches!(registry.get(7), Lookup::Known(_)));
    // Neither is a minute of 429.
    let (server, registry) = Server::new(|at| match at < Duration::from_secs(60) {
        true => status(429),
        false => Ok((200, r#"{"schema": "\"string\""}"#.to_owned())),
    });
    server.waits(&registry, 7);
    assert!(matches!(registry.get(7), Lookup::Known(_)));
}
