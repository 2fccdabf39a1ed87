//! Limits the memory of responses that clients have not read yet.
//!
//! A response is complete in memory before it is sent, and one that lists many streams has tens of
//! megabytes. A client that reads slowly holds it until the connection must close. So all large
//! bodies together may take [`HELD_BYTES_MAX`]; beyond that, a request is answered with 503 and
//! `retry-after`. Small bodies, such as those of probes, are always sent.

use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::{Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::response::{Answer, later};

/// Most bytes of large bodies at a time: a few scrapes of the largest size. A client that reads
/// takes a body in milliseconds.
const HELD_BYTES_MAX: usize = 256 << 20;
/// A body up to this size is small: all connections together hold a few megabytes of small bodies.
const SMALL: usize = 64 << 10;
/// Bytes that one permit stands for.
const UNIT: usize = 1 << 10;

/// The room for large bodies.
#[derive(Debug)]
pub struct Bodies {
    room: Arc<Semaphore>,
    /// All of the room, in [`UNIT`]s.
    all: u32,
}

/// The bytes of a body and their part of the room.
struct Held {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for Bodies {
    fn default() -> Bodies {
        Bodies::of(HELD_BYTES_MAX)
    }
}

impl Bodies {
    /// Room for this many bytes.
    fn of(bytes: usize) -> Bodies {
        let all = units(bytes);
        Bodies {
            room: Arc::new(Semaphore::new(all as usize)),
            all,
        }
    }

    /// Returns the answer, whose body keeps its part of the room until it is sent or given up.
    /// Without room, returns an error instead. A body that is larger than all the room is sent only
    /// while no other large body is held.
    pub async fn admit(&self, answer: Answer) -> Answer {
        let bytes = answer.body().size_hint().exact().unwrap_or_default();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes <= SMALL {
            return answer;
        }
        let wanted = units(bytes).min(self.all);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(wanted) else {
            crate::warn_limited!(
                bytes,
                "http response refused, clients are slow to read others"
            );
            let what = "clients are slow to read other responses, which are held in memory";
            let hint = "send the request again in a moment, or ask for less";
            return later(StatusCode::SERVICE_UNAVAILABLE, what, hint);
        };
        let (head, body) = answer.into_parts();
        let Ok(body) = body.collect().await;
        let held = Held {
            bytes: body.to_bytes(),
            _room: room,
        };
        Response::from_parts(head, Full::new(Bytes::from_owner(held)))
    }
}

/// This many bytes in [`UNIT`]s.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::response::{PLAIN, whole};
    use super::*;

    fn body(kib: usize) -> Answer {
        whole(StatusCode::OK, PLAIN, vec![b'x'; kib << 10])
    }

    #[tokio::test]
    async fn bodies_that_nobody_reads_leave_no_room_for_others_but_small_ones() {
        let bodies = Bodies::of(200 << 10);
        let first = bodies.admit(body(150)).await;
        assert_eq!(first.status(), StatusCode::OK);
        let second = bodies.admit(body(70)).await;
        assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(second.headers().contains_key("retry-after"));
        assert_eq!(bodies.admit(body(64)).await.status(), StatusCode::OK);
        // Like a connection, takes the bytes: the body is gone before they are sent.
        let Ok(taken) = first.into_body().collect().await;
        let taken = taken.to_bytes();
        assert_eq!(taken.len(), 150 << 10);
        assert!(!bodies.admit(body(70)).await.status().is_success());
        drop(taken);
        // A body that is larger than the room needs all of it.
        let large = bodies.admit(body(1000)).await;
        assert_eq!(large.status(), StatusCode::OK);
        assert!(!bodies.admit(body(65)).await.status().is_success());
        drop(large);
        assert!(bodies.admit(body(200)).await.status().is_success());
    }
}
