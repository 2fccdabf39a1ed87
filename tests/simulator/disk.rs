//! The disks of the simulated hosts: real folders in memory, on which a write can fail half-way and
//! power can be lost.
//!
//! As with the clocks, this program defines functions of the C library itself. On the thread of a
//! simulation a write to a full disk takes half of its bytes and then fails, nothing is synced to a
//! real disk, and what was written since the last sync is known, so that a power failure can take
//! it away.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_long, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    /// Bytes that still fit, if that matters; `None` outside of simulations.
    static ROOM: Cell<Option<usize>> = const { Cell::new(None) };
    /// Files that were written since they were synced, each with its length at that time.
    static UNSYNCED: RefCell<BTreeMap<PathBuf, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// A folder for the state directories of one simulation. All their names have one length.
pub fn root() -> TempDir {
    let shared = Path::new("/dev/shm");
    let root = if shared.is_dir() {
        TempDir::with_prefix_in("trueline-simulator-", shared)
    } else {
        TempDir::with_prefix("trueline-simulator-")
    };
    root.expect("a folder")
}

/// The disk that the host which runs next has: full, or with room for this many bytes.
pub fn room(bytes: usize) {
    ROOM.set(Some(bytes));
}

/// No simulation runs on this thread any more.
pub fn end() {
    ROOM.set(None);
    UNSYNCED.with_borrow_mut(BTreeMap::clear);
}

/// How much of a file is synced, if that is not all.
pub fn synced(path: &Path) -> Option<u64> {
    UNSYNCED.with_borrow(|all| all.get(path).copied())
}

/// Power fails: of what was not synced a part of the given share is left.
pub fn lose(folder: &Path, share: f64) {
    let all = UNSYNCED.take();
    let (mine, others) = all
        .into_iter()
        .partition(|(path, _)| path.starts_with(folder));
    UNSYNCED.set(others);
    for (path, synced) in mine {
        let Ok(file) = fs::OpenOptions::new().write(true).open(&path) else {
            continue;
        };
        let length = file.metadata().map_or(synced, |m| m.len()).max(synced);
        let left = synced + ((length - synced) as f64 * share) as u64;
        file.set_len(left).expect("a file in memory");
    }
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn __errno_location() -> *mut c_int;
}

#[cfg(target_arch = "x86_64")]
const NUMBERS: [c_long; 4] = [1, 74, 75, 264];
#[cfg(target_arch = "aarch64")]
const NUMBERS: [c_long; 4] = [64, 82, 83, 38];

const ENOSPC: c_int = 28;
/// The folder of the process, for calls that take one.
const HERE: c_int = -100;

fn path_of(file: c_int) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{file}")).ok()
}

/// See `write(2)`.
///
/// # Safety
///
/// `from` is readable for `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, from: *const c_void, count: usize) -> isize {
    let room = ROOM.try_with(Cell::get).ok().flatten().filter(|_| file > 2);
    let mut fits = count;
    if let Some(room) = room {
        fits = count.min(room);
        if let Some(path) = path_of(file) {
            let length = fs::metadata(&path).map_or(0, |m| m.len());
            UNSYNCED.with_borrow_mut(|all| all.entry(path).or_insert(length).to_owned());
        }
        ROOM.set(Some(room.saturating_sub(count)));
        if fits == 0 && count > 0 {
            // SAFETY: the location is that of this thread.
            unsafe { *__errno_location() = ENOSPC };
            return -1;
        }
    }
    // SAFETY: the arguments of the call are passed on, with no more bytes.
    unsafe { syscall(NUMBERS[0], file, from, fits) as isize }
}

fn sync(number: c_long, file: c_int) -> c_int {
    if ROOM.try_with(Cell::get).ok().flatten().is_none() {
        // SAFETY: a number is passed on.
        return unsafe { syscall(number, file) } as c_int;
    }
    if let Some(path) = path_of(file) {
        UNSYNCED.with_borrow_mut(|all| all.remove(&path));
    }
    0
}

/// See `fsync(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn fsync(file: c_int) -> c_int {
    sync(NUMBERS[1], file)
}

/// See `fdatasync(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(file: c_int) -> c_int {
    sync(NUMBERS[2], file)
}

/// See `rename(2)`.
///
/// # Safety
///
/// Both end in a nul.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(old: *const c_char, new: *const c_char) -> c_int {
    // SAFETY: the arguments of the call are passed on.
    let done = unsafe { syscall(NUMBERS[3], HERE, old, HERE, new) } as c_int;
    if ROOM.try_with(Cell::get).ok().flatten().is_some() && done == 0 {
        // SAFETY: the caller says so.
        let [old, new] = [old, new].map(|text| unsafe { CStr::from_ptr(text) });
        let [old, new] = [old, new].map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())));
        UNSYNCED.with_borrow_mut(|all| {
            // A folder takes what is in it along.
            all.retain(|path, _| !path.starts_with(&new));
            let moved = all.keys().filter(|path| path.starts_with(&old)).cloned();
            for path in moved.collect::<Vec<_>>() {
                let synced = all.remove(&path).unwrap_or_default();
                let rest = path.strip_prefix(&old).ok().filter(|r| *r != Path::new(""));
                all.insert(rest.map_or(new.clone(), |rest| new.join(rest)), synced);
            }
        });
    }
    done
}

#[test]
fn a_full_disk_takes_a_part_and_power_takes_what_was_not_synced() {
    use std::io::Write;
    let folder = root();
    let path = folder.path().join("file");
    room(150);
    let mut file = fs::File::create(&path).expect("a file");
    file.write_all(&[1; 100]).expect("room for 100 bytes");
    file.sync_all().expect("synced");
    let error = file.write_all(&[2; 100]).expect_err("room for 50 more");
    assert_eq!(error.raw_os_error(), Some(ENOSPC));
    assert_eq!(fs::read(&path).expect("bytes").len(), 150);
    let moved = folder.path().join("moved");
    fs::rename(&path, &moved).expect("renamed");
    lose(folder.path(), 0.5);
    assert_eq!(fs::read(&moved).expect("bytes").len(), 125);
    end();
}
