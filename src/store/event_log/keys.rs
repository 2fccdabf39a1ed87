//! Idempotency keys of requests that are in the log.

use std::collections::{HashMap, VecDeque};

/// Most keys to remember.
pub const KEYS_MAX: usize = 200_000;

/// A request that had a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyedRequest {
    /// Offset of its first event.
    pub base: u64,
    /// Number of its events.
    pub events: u64,
    /// A hash of its events.
    pub digest: u64,
}

/// The keys of the newest requests.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: HashMap<Box<str>, KeyedRequest>,
    order: VecDeque<(u64, Box<str>)>,
    /// Keys that were forgotten because there were too many.
    pub forgotten: u64,
}

impl Keys {
    pub fn get(&self, key: &str) -> Option<KeyedRequest> {
        self.known.get(key).copied()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Remembers a request, and forgets the oldest if there are too many.
    pub fn insert(&mut self, key: &str, known: KeyedRequest) {
        self.order.push_back((known.base, key.into()));
        self.known.insert(key.into(), known);
        if self.known.len() > KEYS_MAX
            && let Some((_, key)) = self.order.pop_front()
        {
            self.known.remove(&key);
            self.forgotten += 1;
        }
    }

    /// Forgets the requests before this offset, whose events are deleted.
    pub fn forget_before(&mut self, offset: u64) {
        while let Some((base, _)) = self.order.front()
            && *base < offset
            && let Some((_, key)) = self.order.pop_front()
        {
            self.known.remove(&key);
        }
    }
}
