//! Room that a log leaves free on its disk.
//!
//! Nothing is deleted before its sums are in a snapshot. If events filled the disk, no snapshot
//! could be written, and nothing would ever be deleted. So requests are refused while the disk has
//! less than a reserve, no matter what fills it. Snapshots are written into the reserve, and
//! segments that the newest snapshot does not need are deleted until it is restored.

use std::path::Path;

/// Reserve if saves are small: states grow, and journals, history and records need room too.
const RESERVE_BYTES: u64 = 64 << 20;
/// On a small disk, the reserve is one part in this many.
const RESERVE_SHARE: u64 = 8;
/// The reserve has room for this many saves: while one is written, the kept ones stay.
const RESERVE_SAVES: u64 = 3;

/// The size of a disk, and its free bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Space {
    /// All bytes of the disk.
    pub total: u64,
    /// Bytes that this user may still write.
    pub free: u64,
}

impl Space {
    /// The space on the disk of a directory. `None` if the system does not report it; then writes
    /// fail when the disk is full.
    pub fn of(directory: &Path) -> Option<Space> {
        let found = rustix::fs::statvfs(directory).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let space = Space {
            total: bytes(found.f_blocks),
            free: bytes(found.f_bavail),
        };
        (space.total > 0).then_some(space)
    }

    /// Bytes to leave free if a save takes `saved` bytes.
    pub fn reserve(self, saved: u64) -> u64 {
        let least = RESERVE_BYTES.min(self.total / RESERVE_SHARE);
        saved.saturating_mul(RESERVE_SAVES).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EventLog, LogLimits, Receipt, Refusal};
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const TOTAL: u64 = 512 << 10;

    fn bytes_of(directory: &Path) -> u64 {
        let files = fs::read_dir(directory).expect("a folder");
        let lengths = files.map(|file| file.and_then(|f| f.metadata()).map_or(0, |m| m.len()));
        lengths.sum()
    }

    /// A small disk that holds only the files of one folder.
    fn space_of(directory: &Path) -> Option<Space> {
        Some(Space {
            total: TOTAL,
            free: TOTAL.saturating_sub(bytes_of(directory)),
        })
    }

    /// A log whose limits allow it all of such a disk.
    struct Small {
        folder: TempDir,
        log: EventLog,
    }

    impl Small {
        fn new() -> Small {
            let folder = TempDir::with_prefix("trueline-small-").expect("a folder");
            let limits = LogLimits {
                bytes_max: 1 << 40,
                keep_ms: 1 << 40,
            };
            let log = EventLog::open_on(folder.path(), limits, space_of).expect("it opens");
            Small { folder, log }
        }

        /// Lets other programs take this many bytes of the disk.
        fn others(&self, bytes: u64) {
            let file = fs::File::create(self.folder.path().join("others")).expect("a file");
            file.set_len(bytes).expect("a sparse file");
        }

        fn post(&self) -> Result<Receipt, Refusal> {
            self.log.append(None, 0, vec!["1".repeat(1000)])
        }

        /// Posts until a post is refused, and returns how many were not.
        fn fill(&self) -> u64 {
            let mut posts = 0;
            let refused = loop {
                match self.post() {
                    Ok(_) => posts += 1,
                    Err(refusal) => break refusal,
                }
            };
            assert!(matches!(refused, Refusal::Space(_)), "{refused:?}");
            posts
        }

        fn free(&self) -> u64 {
            TOTAL - bytes_of(self.folder.path())
        }
    }

    #[test]
    fn a_log_on_a_disk_smaller_than_its_bounds_leaves_room_for_snapshots_and_recovers() {
        let small = Small::new();
        let posts = small.fill();
        let reserve = TOTAL / RESERVE_SHARE;
        assert!((reserve..reserve + 4096).contains(&small.free()));
        assert_eq!(small.log.facts().refused[5], 1);
        assert_eq!(small.post().map_err(|_| ()), Err(()));
        // A snapshot has all events. Those it does not need are deleted as far as new events need
        // the room.
        small.log.consume(posts).expect("there is room for it");
        assert_eq!(small.post().map(|r| r.offset), Ok(posts));
        assert!(small.log.facts().first > 0 && small.free() >= reserve);
        assert!(
            small.log.facts().first < posts / 4,
            "{:?}",
            small.log.facts()
        );
        // One event is in no snapshot, so its segment stays; the others are deleted for room.
        assert!(small.fill() > posts / 2);
        assert!(small.free() >= reserve);
    }

    #[test]
    fn a_log_gives_way_to_others_on_its_disk_and_to_larger_snapshots() {
        let small = Small::new();
        let posts = (0..200).filter(|_| small.post().is_ok()).count() as u64;
        assert_eq!(posts, 200);
        small.log.consume(100).expect("there is room for it");
        let was = small.log.facts();
        small.log.leave_room(0).expect("deleted");
        assert_eq!(small.log.facts(), was, "there is room");
        // Snapshots grow, so segments that the newest one has are deleted.
        small.log.leave_room(128 << 10).expect("deleted");
        let now = small.log.facts();
        assert!((1..=100).contains(&now.first), "{now:?}");
        assert!(small.free() >= 384 << 10);
        // Other programs fill the disk: all that may be deleted is, and posts are refused until
        // they free it.
        small.others(280 << 10);
        small.log.leave_room(128 << 10).expect("deleted");
        assert_eq!(small.log.facts().end, 200);
        let refused = small.post().expect_err("there is less than the reserve");
        assert!(matches!(refused, Refusal::Space(why) if why.contains(" 0.4 MiB are kept")));
        small.others(0);
        assert_eq!(small.post().map(|r| r.offset), Ok(200));
    }

    #[test]
    fn a_reserve_is_for_several_saves_and_no_small_disk_is_all_reserve() {
        let space = |total| Space { total, free: 0 };
        assert_eq!(space(1 << 40).reserve(0), RESERVE_BYTES);
        assert_eq!(space(1 << 40).reserve(1 << 30), 3 << 30);
        assert_eq!(space(64 << 20).reserve(0), 8 << 20);
        assert_eq!(space(1 << 40).reserve(u64::MAX), u64::MAX);
        let here = Space::of(Path::new(".")).expect("the system says");
        assert!(here.free <= here.total);
        assert_eq!(Space::of(Path::new("no such directory")), None);
    }
}
