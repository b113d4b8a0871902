//! What happens to jobs and campaigns, as it happens: a bounded ring of events that streams read at their own pace.
//!
//! Nobody waits for a reader: one that falls behind the ring starts again from a snapshot.

use crate::engine::locked;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Events and bytes of their data that are kept for readers that come back.
const KEPT: (usize, usize) = (4096, 16 << 20);

/// Streams open at a time.
pub const MAX_STREAMS: usize = 256;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// Ascends by one.
    pub number: u64,
    /// `state`, `progress`, `checkpoint`, `result` or `campaign`.
    pub name: &'static str,
    /// The job it is about.
    pub job: Option<u64>,
    /// The campaign it is about, or its job belongs to.
    pub campaign: Option<u64>,
    /// JSON in one line.
    pub data: Arc<str>,
}

/// Whose events a stream wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    All,
    /// One job's.
    Job(u64),
    /// One campaign's, and its jobs'.
    Campaign(u64),
}

impl Scope {
    fn wants(self, event: &Event) -> bool {
        match self {
            Scope::All => true,
            Scope::Job(id) => event.job == Some(id),
            Scope::Campaign(id) => event.campaign == Some(id),
        }
    }
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    newest: u64,
}

/// All events of this run of the daemon.
#[derive(Debug)]
pub struct Events {
    /// Tells ids of this run from those of others.
    boot: u64,
    ring: Mutex<Ring>,
    /// The newest number, for whoever waits.
    newest: watch::Sender<u64>,
    closed: watch::Sender<bool>,
    streams: AtomicUsize,
}

impl Default for Events {
    fn default() -> Events {
        let boot = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        Events {
            boot,
            ring: Mutex::default(),
            newest: watch::Sender::new(0),
            closed: watch::Sender::new(false),
            streams: AtomicUsize::new(0),
        }
    }
}

/// A place among the open streams, given back when dropped.
#[derive(Debug)]
pub struct Place(Arc<Events>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Relaxed);
    }
}

impl Events {
    /// Adds an event and wakes the readers; never waits for them.
    pub fn publish(&self, name: &'static str, job: Option<u64>, campaign: Option<u64>, data: &Value) {
        let data: Arc<str> = data.to_string().into();
        let number = {
            let mut ring = locked(&self.ring);
            ring.newest += 1;
            ring.bytes += data.len();
            let number = ring.newest;
            ring.events.push_back(Event { number, name, job, campaign, data });
            while ring.events.len() > KEPT.0 || ring.bytes > KEPT.1 && ring.events.len() > 1 {
                if let Some(old) = ring.events.pop_front() {
                    ring.bytes -= old.data.len();
                }
            }
            number
        };
        self.newest.send_replace(number);
    }

    /// The number of the newest event.
    pub fn newest(&self) -> u64 {
        locked(&self.ring).newest
    }

    /// The events after `cursor` that `scope` wants, at most `most`, and how far that goes; `None` if some that came after `cursor` are
    /// no longer kept.
    pub fn since(&self, cursor: u64, scope: Scope, most: usize) -> Option<(Vec<Event>, u64)> {
        let ring = locked(&self.ring);
        let oldest = ring.events.front().map_or(ring.newest + 1, |event| event.number);
        if cursor + 1 < oldest || cursor > ring.newest {
            return None;
        }
        let mut found = Vec::new();
        let mut reached = cursor;
        for event in ring.events.iter().skip((cursor + 1 - oldest) as usize) {
            if found.len() == most {
                break;
            }
            reached = event.number;
            if scope.wants(event) {
                found.push(event.clone());
            }
        }
        Some((found, reached))
    }

    /// The id of an event as clients see it.
    pub fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.boot)
    }

    /// The number that an id stands for, if it is of this run.
    pub fn number(&self, id: &str) -> Option<u64> {
        let (boot, number) = id.trim().split_once('-')?;
        (boot.parse() == Ok(self.boot)).then(|| number.parse().ok()).flatten()
    }

    /// Tells of every newer event.
    pub fn wake(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Ends all streams: they say so and close.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Tells of the end.
    pub fn closed(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }

    /// A place for one more stream, unless [`MAX_STREAMS`] are open.
    pub fn place(self: &Arc<Self>) -> Option<Place> {
        let taken = self.streams.fetch_update(Relaxed, Relaxed, |open| (open < MAX_STREAMS).then_some(open + 1));
        taken.is_ok().then(|| Place(self.clone()))
    }

    /// Streams that are open.
    pub fn streams(&self) -> usize {
        self.streams.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reader_gets_what_it_missed_or_is_told_that_it_cannot() {
        let events = Events::default();
        for number in 1..=10 {
            events.publish("state", Some(number % 2), None, &json!(number));
        }
        let (odd, reached) = events.since(4, Scope::Job(1), 2).expect("kept");
        assert_eq!(odd.iter().map(|event| event.number).collect::<Vec<_>>(), [5, 7]);
        assert_eq!(reached, 7);
        assert_eq!(events.since(10, Scope::All, 9).map(|(found, reached)| (found.len(), reached)), Some((0, 10)));
        assert!(events.since(11, Scope::All, 9).is_none(), "a number from the future is of another run");
        for _ in 0..KEPT.0 {
            events.publish("progress", None, None, &json!(null));
        }
        assert!(events.since(9, Scope::All, 9).is_none());
        let (found, _) = events.since(10, Scope::All, usize::MAX).expect("just kept");
        assert_eq!(found.len(), KEPT.0);
        let large = json!("x".repeat(KEPT.1 / 2));
        for _ in 0..3 {
            events.publish("state", None, None, &large);
        }
        assert!(locked(&events.ring).bytes <= KEPT.1);
        assert_eq!(events.number(&events.id(7)), Some(7));
        assert_eq!(events.number("1-7"), None);
    }

    #[test]
    fn places_are_limited_and_given_back() {
        let events = Arc::new(Events::default());
        let places: Vec<_> = (0..MAX_STREAMS).map(|_| events.place().expect("a place")).collect();
        assert!(events.place().is_none());
        drop(places);
        assert_eq!(events.streams(), 0);
        assert!(events.place().is_some());
    }
}
