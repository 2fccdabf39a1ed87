//! The stop flag: threads read it and tasks wait for it.
//!
//! Every caller that may end the application holds a [`Stop`]: the signal handler of `run`, the
//! timer of `demo`, a test. Only [`Stop::on_signals`], which the commands call, handles signals.

use std::time::Duration;

use tokio::sync::watch;

use crate::telemetry::log;

/// Time in which a further signal counts as the same one: programs such as `timeout` send it to the
/// process and to its group.
const SAME: Duration = Duration::from_millis(200);

/// A flag that is set once. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    flag: watch::Sender<bool>,
}

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Sets the flag.
    pub fn now(&self) {
        self.flag.send_replace(true);
    }

    /// Whether the flag is set.
    pub fn asked(&self) -> bool {
        *self.flag.borrow()
    }

    /// Waits until the flag is set.
    pub async fn wait(&self) {
        let mut flag = self.flag.subscribe();
        // An error would mean that all senders are gone, but `self` is one.
        let _ = flag.wait_for(|&set| set).await;
    }

    /// Sets the flag at the first SIGTERM or SIGINT. A second signal, unless it comes within
    /// [`SAME`], writes the log lines that wait and ends the process at once, with the exit code
    /// that a shell reports for SIGINT.
    pub async fn on_signals(self) {
        first_signal().await;
        self.now();
        tokio::time::sleep(SAME).await;
        first_signal().await;
        tracing::warn!("a second signal: the process ends at once");
        log::finish();
        std::process::exit(130);
    }
}

#[cfg(unix)]
async fn first_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut term) = signal(SignalKind::terminate()) else {
        return interrupt().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        () = interrupt() => {}
    }
}

#[cfg(not(unix))]
async fn first_signal() {
    interrupt().await;
}

async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler the signal itself ends the process.
        std::future::pending::<()>().await;
    }
}
