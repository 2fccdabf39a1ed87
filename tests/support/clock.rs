//! A wall clock that steps under one process, by a library that is loaded before the system's.

use std::path::PathBuf;
use std::process::Command;

use super::broker::unique;

/// Why a test that needs one is skipped.
pub const NO_COMPILER: &str = "needs a C compiler to make a clock that steps";

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    int done = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_REALTIME) {
        FILE *f = fopen(getenv("CLOCK_STEP"), "r");
        long step = 0;
        if (f) { if (fscanf(f, "%ld", &step) != 1) step = 0; fclose(f); }
        t->tv_sec += step;
    }
    return done;
}
"#;

/// The clock of the processes that have its environment.
pub struct SteppingClock {
    library: PathBuf,
    step: PathBuf,
}

impl SteppingClock {
    /// One that is right; `None` where no library can be made.
    pub fn new() -> Option<SteppingClock> {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("clock-{}", unique()));
        std::fs::create_dir_all(&dir).ok()?;
        let code = dir.join("clock.c");
        std::fs::write(&code, SOURCE).ok()?;
        let clock = SteppingClock {
            library: dir.join("clock.so"),
            step: dir.join("step"),
        };
        clock.step(0);
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"])
            .arg(&clock.library)
            .arg(&code);
        cc.status().is_ok_and(|s| s.success()).then_some(clock)
    }

    /// What a process needs to have it.
    pub fn env(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LD_PRELOAD", self.library.display().to_string()),
            ("CLOCK_STEP", self.step.display().to_string()),
        ]
    }

    /// Sets it so many seconds off.
    pub fn step(&self, seconds: i64) {
        // Renamed into place: a reader never sees half of it.
        let new = self.step.with_extension("new");
        std::fs::write(&new, seconds.to_string()).expect("written");
        std::fs::rename(&new, &self.step).expect("renamed");
    }
}
