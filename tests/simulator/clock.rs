//! The time of the simulated hosts.
//!
//! The standard library reads clocks and sleeps through three functions of the C library. This
//! program defines them itself, and the linker prefers its own. On the thread of a simulation they
//! answer with the time of the simulation, and a sleep only moves that; on every other thread they
//! ask the kernel. So code under test needs no clock of its own, and cannot read another one by
//! accident.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{c_int, c_long};
use std::time::Duration;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// The monotonic clock when a simulation begins, in seconds.
const BOOT: u64 = 1_000_000;
/// The wall clock of a host in order when a simulation begins, in ms since 1970.
pub const BEGIN_MS: i64 = 1_760_000_400_000;

thread_local! {
    /// Time since the begin; `None` outside of simulations.
    static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    /// By how many ms the wall clock of the host that runs is ahead.
    static AHEAD: Cell<i64> = const { Cell::new(0) };
}

/// Sets the time of this thread, and by how much the wall clock of its host is ahead.
pub fn set(now: Duration, ahead_ms: i64) {
    NOW.set(Some(now.as_nanos() as u64));
    AHEAD.set(ahead_ms);
}

/// Time since the begin of the simulation.
pub fn now() -> Duration {
    Duration::from_nanos(NOW.get().unwrap_or(0))
}

/// Whether this is the thread of a simulation.
pub fn is_simulated() -> bool {
    NOW.get().is_some()
}

/// Lets time pass.
pub fn sleep(time: Duration) {
    NOW.set(Some(NOW.get().unwrap_or(0) + time.as_nanos() as u64));
}

/// Time since the begin, as the wall clock of a host in order.
pub fn wall_ms(at: Duration) -> i64 {
    BEGIN_MS + at.as_millis() as i64
}

/// The structure of the C library.
#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanos: c_long,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

#[cfg(target_arch = "x86_64")]
const NUMBERS: (c_long, c_long) = (228, 230);
#[cfg(target_arch = "aarch64")]
const NUMBERS: (c_long, c_long) = (113, 115);

const WALL: [c_int; 2] = [0, 5];
const PROCESS: [c_int; 2] = [2, 3];

/// See `clock_gettime(2)`.
///
/// # Safety
///
/// `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(id: c_int, out: *mut Timespec) -> c_int {
    let Some(now) = NOW.get().filter(|_| !PROCESS.contains(&id)) else {
        // SAFETY: the arguments of the call are passed on.
        return unsafe { syscall(NUMBERS.0, id, out) } as c_int;
    };
    let (seconds, nanos) = if WALL.contains(&id) {
        let ms = (BEGIN_MS + AHEAD.get()) as u64;
        let all = ms * 1_000_000 + now;
        (all / SECOND, all % SECOND)
    } else {
        (BOOT + now / SECOND, now % SECOND)
    };
    // SAFETY: the caller says so.
    unsafe {
        (*out).seconds = seconds as i64;
        (*out).nanos = nanos as c_long;
    }
    0
}

/// See `clock_nanosleep(2)`.
///
/// # Safety
///
/// `time` is readable, and `rest` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    id: c_int,
    flags: c_int,
    time: *const Timespec,
    rest: *mut Timespec,
) -> c_int {
    if NOW.get().is_some() {
        // SAFETY: the caller says so.
        let (seconds, nanos) = unsafe { ((*time).seconds as u64, (*time).nanos as u64) };
        let asked = Duration::from_nanos(seconds * SECOND + nanos);
        match flags {
            0 => sleep(asked),
            // Until a time of the monotonic clock.
            _ => sleep((asked - Duration::from_secs(BOOT)).saturating_sub(now())),
        }
        return 0;
    }
    // SAFETY: the arguments of the call are passed on.
    match unsafe { syscall(NUMBERS.1, id, flags, time, rest) } {
        0 => 0,
        _ => 4,
    }
}

/// See `nanosleep(2)`.
///
/// # Safety
///
/// `time` is readable, and `rest` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(time: *const Timespec, rest: *mut Timespec) -> c_int {
    // SAFETY: as above; 1 is the monotonic clock.
    match unsafe { clock_nanosleep(1, 0, time, rest) } {
        0 => 0,
        _ => -1,
    }
}

#[test]
fn the_clocks_of_this_thread_are_those_of_the_simulation_and_a_sleep_takes_no_time() {
    use std::time::{Instant, SystemTime, UNIX_EPOCH};
    let ms = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.expect("after 1970").as_millis() as i64
    };
    let before = Instant::now();
    set(Duration::from_secs(5), -3_600_000);
    let (start, at_ms) = (Instant::now(), ms());
    std::thread::sleep(Duration::from_secs(100_000));
    assert_eq!(start.elapsed(), Duration::from_secs(100_000));
    assert_eq!((at_ms, ms()), (BEGIN_MS - 3_595_000, BEGIN_MS + 96_405_000));
    let elsewhere = std::thread::spawn(Instant::now).join();
    assert!(elsewhere.expect("no panic") - before < Duration::from_secs(100));
}
