//! What may be asked of the running program from outside, handed in by who can do it.
//!
//! HTTP and the engine must not know each other; so the application leaves here what the server may call.

use std::fmt;
use std::sync::OnceLock;

/// What became of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// What is wrong with the file, as `check` says it; where this is not empty nothing was changed.
    pub problems: Vec<String>,
    /// Keys whose new values are in force.
    pub applied: Vec<String>,
    /// Keys whose new values need a restart; the old ones are at work.
    pub needs_restart: Vec<String>,
}

type Act = Box<dyn Fn() -> Reloaded + Send + Sync>;

/// The acts. See the module.
#[derive(Default)]
pub struct Control {
    reload: OnceLock<Act>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let can = self.reload.get().is_some();
        f.debug_struct("Control").field("reload", &can).finish()
    }
}

impl Control {
    /// Says how to reload. Only the first says so.
    pub fn on_reload(&self, act: impl Fn() -> Reloaded + Send + Sync + 'static) {
        let _ = self.reload.set(Box::new(act));
    }

    /// Reads the configuration again; `None` where nobody said how. Reads files and waits for the engine.
    pub fn reload(&self) -> Option<Reloaded> {
        self.reload.get().map(|act| act())
    }
}
