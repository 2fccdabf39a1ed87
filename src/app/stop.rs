//! The end of the world, handed in: a flag that threads read and tasks wait for.
//!
//! Whoever may end the application holds a [`Stop`]: the signal handler of `run`, the timer of `demo`,
//! a test. Nothing in [`super`] reaches for a signal by itself but [`Stop::on_signals`], which the verbs
//! call.

use tokio::sync::watch;

/// A flag that goes up once. Clones are the same flag.
#[derive(Debug, Clone)]
pub struct Stop {
    flag: watch::Sender<bool>,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop::new()
    }
}

impl Stop {
    /// A flag that is down.
    pub fn new() -> Stop {
        Stop {
            flag: watch::Sender::new(false),
        }
    }

    /// Puts it up.
    pub fn now(&self) {
        self.flag.send_replace(true);
    }

    /// Whether it is up.
    pub fn asked(&self) -> bool {
        *self.flag.borrow()
    }

    /// Waits until it is up.
    pub async fn wait(&self) {
        let mut flag = self.flag.subscribe();
        // An error means that all senders are gone, and `self` is one.
        let _ = flag.wait_for(|&up| up).await;
    }

    /// Puts the flag up at the first SIGTERM or SIGINT. A second one ends the process at once, with the
    /// code a shell gives to a process that died of SIGINT: whoever presses Ctrl-C twice means it.
    pub async fn on_signals(self) {
        first_signal().await;
        self.now();
        first_signal().await;
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
        // No handler can be had: the process then dies of the signal itself, as it would without us.
        std::future::pending::<()>().await;
    }
}
