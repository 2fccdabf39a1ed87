//! The open connections, and which one ends when there are too many.
//!
//! At most [`CONNECTIONS_MAX`] connections are open, and at most [`PEER_MAX`] of one address. For a
//! new connection beyond that, another one is ended if possible: one that waits for its next
//! request, or whose request has taken longer than [`BUSY_MAX`]. The connection that has been in
//! this state the longest is chosen, from the same address if that has too many. So a probe of
//! `/live` is answered however many idle or stalled connections are open, and a client that leaks
//! connections shows in a metric and costs no memory. If all others are taps or serve requests that
//! are younger, the new connection is refused. A tap connection is never ended for another; the
//! number of taps is limited separately.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Most open connections: a few scrapers, the probes of a load balancer and some people.
pub const CONNECTIONS_MAX: usize = 128;
/// Most connections of one address.
pub const PEER_MAX: usize = 64;
/// How long a request may keep its connection from being ended for another. Responses are computed
/// in milliseconds; what takes longer is a client that does not read.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// What a connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    /// It has waited for a request since this time.
    Idle(Instant),
    /// It has served a request since this time.
    Busy(Instant),
    /// It listens to the tap.
    Listening,
}

#[derive(Debug)]
struct Open {
    peer: IpAddr,
    state: ConnectionState,
    end: Arc<Notify>,
}

/// The open connections.
#[derive(Debug, Default)]
pub struct Connections(Mutex<(u64, HashMap<u64, Open>)>);

/// A slot among the connections; dropping it gives the slot back.
#[derive(Debug)]
pub struct ConnectionSlot {
    number: u64,
    all: Arc<Connections>,
    end: Arc<Notify>,
    /// Another connection ends for this one.
    pub made_room: bool,
}

impl Connections {
    /// A slot for a new connection; if there are too many, another one ends. `None` if none can
    /// be.
    pub fn admit(self: &Arc<Self>, peer: IpAddr, now: Instant) -> Option<ConnectionSlot> {
        let mut table = self.0.lock();
        let (numbers, open) = &mut *table;
        let of_peer = open.values().filter(|o| o.peer == peer).count();
        let made_room = of_peer >= PEER_MAX || open.len() >= CONNECTIONS_MAX;
        if made_room {
            let theirs = |o: &Open| of_peer < PEER_MAX || o.peer == peer;
            let longest = open.iter().filter(|(_, o)| theirs(o));
            let longest = longest.filter_map(|(n, o)| Some((since(o.state, now)?, *n)));
            let (_, number) = longest.min()?;
            // Its task ends by itself, and its slot is free at once.
            open.remove(&number)?.end.notify_one();
        }
        *numbers += 1;
        let end = Arc::new(Notify::new());
        open.insert(
            *numbers,
            Open {
                peer,
                state: ConnectionState::Idle(now),
                end: Arc::clone(&end),
            },
        );
        Some(ConnectionSlot {
            number: *numbers,
            all: Arc::clone(self),
            end,
            made_room,
        })
    }

    /// How many connections are open, and how many of them are of this address.
    pub fn open(&self, peer: IpAddr) -> (usize, usize) {
        let table = self.0.lock();
        let of_peer = table.1.values().filter(|o| o.peer == peer).count();
        (table.1.len(), of_peer)
    }

    /// Whether no connection is open.
    pub fn is_empty(&self) -> bool {
        self.0.lock().1.is_empty()
    }
}

/// Since when a connection can be ended for another, if it can.
fn since(state: ConnectionState, now: Instant) -> Option<Instant> {
    match state {
        ConnectionState::Idle(since) => Some(since),
        ConnectionState::Busy(since) if now.duration_since(since) > BUSY_MAX => Some(since),
        ConnectionState::Busy(_) | ConnectionState::Listening => None,
    }
}

impl ConnectionSlot {
    fn set(&self, state: ConnectionState) {
        if let Some(open) = self.all.0.lock().1.get_mut(&self.number) {
            open.state = state;
        }
    }

    /// The connection has received a request.
    pub fn busy(&self) {
        self.set(ConnectionState::Busy(Instant::now()));
    }

    /// The request was answered.
    pub fn idle(&self) {
        self.set(ConnectionState::Idle(Instant::now()));
    }

    /// The answer to the request is the tap.
    pub fn listening(&self) {
        self.set(ConnectionState::Listening);
    }

    /// Resolves when the connection must end for another.
    pub async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.all.0.lock().1.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[test]
    fn the_longest_idle_connection_of_the_same_address_makes_room() {
        let all = Arc::new(Connections::default());
        let start = Instant::now();
        let at = |i: usize| start + Duration::from_millis(i as u64);
        let held: Vec<ConnectionSlot> = (0..PEER_MAX)
            .map(|i| all.admit(peer(1), at(i)).expect("room"))
            .collect();
        let other = all.admit(peer(2), at(0)).expect("room");
        let next = all.admit(peer(1), at(100)).expect("one is ended");
        assert_eq!(all.open(peer(1)), (PEER_MAX + 1, PEER_MAX));
        let numbers =
            |all: &Arc<Connections>| -> Vec<u64> { all.0.lock().1.keys().copied().collect() };
        assert!(
            !numbers(&all).contains(&held[0].number),
            "it was idle the longest"
        );
        assert!(numbers(&all).contains(&other.number), "another address");
        drop((held, other, next));
        assert!(all.is_empty());
    }

    #[test]
    fn a_request_under_way_and_a_listener_stay_and_a_client_that_does_not_read_goes() {
        let all = Arc::new(Connections::default());
        let now = Instant::now();
        let held: Vec<ConnectionSlot> = (0..CONNECTIONS_MAX)
            .map(|i| all.admit(peer((i / PEER_MAX) as u8), now).expect("room"))
            .collect();
        for slot in &held {
            slot.busy();
        }
        held[0].listening();
        assert!(all.admit(peer(9), now).is_none(), "all are at work");
        assert_eq!(all.open(peer(0)), (CONNECTIONS_MAX, PEER_MAX));
        assert_eq!(all.open(peer(9)), (CONNECTIONS_MAX, 0));
        let later = now + BUSY_MAX * 3;
        assert!(all.admit(peer(9), later).is_some());
        let (mut gone, table) = (0, all.0.lock());
        for slot in &held {
            gone += usize::from(!table.1.contains_key(&slot.number));
        }
        assert_eq!(gone, 1);
        assert!(table.1.contains_key(&held[0].number), "it listens");
    }
}
