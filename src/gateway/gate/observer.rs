//! Observation of a gate and of its departing requests, for an experiment.
//!
//! An experiment (`drip find`) tries rates and limits at an origin, and measures the answers. The
//! observer follows each request from its departure for the origin to its end, by the number of its
//! departure. So a request carries no data for this.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::find::{AnswerEvent, Waited};
use limit::{GateLimits, Moment, OriginTime};

use super::OriginGate;
use super::blocked::{BlockedBy, BlockedTimes};
use crate::observe::metrics::Counts;
use crate::time::clock;

/// Upper bound of the events kept between two readings. Later events are dropped.
const MAX_EVENTS: usize = 100_000;
/// Upper bound of the requests followed at once. Further requests are not followed.
const MAX_FOLLOWED: usize = 100_000;
/// Part of the time for which requests must have waited to count as always waiting.
///
/// Below 1: wake-ups may be late.
const ALL_THE_TIME: f64 = 0.98;

/// Records what happens to the requests that leave a gate.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// Followed requests, by the number of their departure.
    followed: HashMap<u64, FollowedRequest, RandomState>,
    /// Number of followed requests whose client still has to send a part of the body.
    ///
    /// They count as departed only afterwards.
    awaiting_clients: u64,
    /// Events since the last reading, each with the instant at which its request was sent.
    events: Vec<(Moment, AnswerEvent)>,
    /// Largest number of requests at the origin since the last reading.
    most_in_flight: usize,
    /// Instant of the last reading, and the blocked times until then.
    last_reading: (Moment, Waited),
    /// Waits of all departed requests until the last reading.
    waits: Counts,
}

/// Request at the origin that is followed.
#[derive(Debug)]
struct FollowedRequest {
    /// Departure for the origin, or the instant at which the client had sent the whole request.
    sent: Moment,
    /// Whether the client still has to send a part of the request.
    awaits_client: bool,
    /// Status of the response head; `None`: the head has not arrived.
    status: Option<u16>,
}

/// End of a request at its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    /// The last byte of the response has arrived.
    Whole,
    /// The request got no response, or only a part of it.
    Failed,
    /// The client has disconnected.
    Abandoned,
}

/// Observations since the previous reading.
pub(crate) struct Observation {
    /// Events, each with the instant at which its request was sent.
    pub(crate) events: Vec<(Moment, AnswerEvent)>,
    /// Number of departures to the origin so far.
    pub(crate) departures: u64,
    /// Whether a request waited for its slot or a permit all the time.
    pub(crate) has_waited: bool,
    /// Time for which the first waiter waited for its slot, and for a permit.
    pub(crate) waited: Waited,
    /// Limits of the file.
    pub(crate) file: GateLimits,
    /// Median wait of the requests that departed after a wait.
    pub(crate) wait: Option<Duration>,
    /// Largest number of requests at the origin at once.
    pub(crate) most_in_flight: usize,
    /// Whether the back-off lowers a limit or pauses the gate.
    pub(crate) is_backed_off: bool,
}

impl Observer {
    /// Records that a request leaves for the origin, for the first time or again.
    pub(super) fn note_departure(&mut self, number: u64, in_flight: usize, now: Moment) {
        self.most_in_flight = self.most_in_flight.max(in_flight);
        if self.followed.len() < MAX_FOLLOWED {
            let followed = FollowedRequest {
                sent: now,
                awaits_client: false,
                status: None,
            };
            self.followed.insert(number, followed);
        }
    }

    /// Records whether the client still has to send a part of the request (`awaits`).
    ///
    /// When the client has sent everything, the request counts as departing now.
    pub(super) fn await_client(&mut self, number: u64, awaits: bool, now: Moment) {
        let Some(request) = self.followed.get_mut(&number) else {
            return;
        };
        if request.status.is_some() || request.awaits_client == awaits {
            return;
        }
        request.awaits_client = awaits;
        if awaits {
            self.awaiting_clients += 1;
        } else {
            request.sent = now;
            self.awaiting_clients -= 1;
        }
    }

    /// Records that the head of a response has arrived.
    pub(super) fn note_head(&mut self, number: u64, status: u16, time: OriginTime, now: Moment) {
        self.await_client(number, false, now);
        let Some(request) = self.followed.get_mut(&number) else {
            return;
        };
        request.status = Some(status);
        let sent = request.sent;
        let took = time.since(sent, now);
        self.note(sent, AnswerEvent::Head { took, status });
    }

    /// Records that a request has left the origin.
    pub(super) fn note_end(&mut self, number: u64, end: RequestEnd, time: OriginTime, now: Moment) {
        self.await_client(number, false, now);
        let Some(FollowedRequest { sent, status, .. }) = self.followed.remove(&number) else {
            return;
        };
        let (took, had_head) = (time.since(sent, now), status.is_some());
        match (end, status) {
            // A tunnel (status 101) has no last byte.
            (_, Some(101)) => {}
            (RequestEnd::Whole, Some(status)) => {
                self.note(sent, AnswerEvent::Whole { took, status });
            }
            (RequestEnd::Failed, _) => self.note(sent, AnswerEvent::Failed { had_head }),
            (RequestEnd::Whole | RequestEnd::Abandoned, _) => {
                self.note(sent, AnswerEvent::Abandoned { had_head, took });
            }
        }
    }

    /// Keeps an event, unless there are too many.
    fn note(&mut self, sent: Moment, event: AnswerEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push((sent, event));
        }
    }
}

/// Returns the times for which requests were blocked by the pace and by permits.
fn waited(times: &BlockedTimes) -> Waited {
    Waited {
        for_pace: times[BlockedBy::Pace as usize],
        for_permits: times[BlockedBy::InFlight as usize],
    }
}

impl OriginGate {
    /// Observes the requests that leave from now on. Requests already at the origin are ignored.
    pub(crate) fn begin_observing(&self) {
        let now = clock::now();
        let mut state = self.lock();
        state.note_blocked(now);
        let waited = waited(&state.blocked.times);
        state.observer = Some(Box::new(Observer {
            last_reading: (now, waited),
            waits: self.metrics.waits.counts(),
            ..Observer::default()
        }));
        self.is_observed.store(true, Ordering::Relaxed);
    }

    /// Ends the observation. What has not been read is lost.
    pub(crate) fn end_observing(&self) {
        self.is_observed.store(false, Ordering::Relaxed);
        self.lock().observer = None;
    }

    /// Returns the observations since the last call; `None` if no experiment observes the gate.
    pub(crate) fn take_observation(&self) -> Option<Observation> {
        let waits = self.metrics.waits.counts();
        let mut state = self.lock();
        let now = clock::now();
        state.back_off(&self.metrics, now);
        state.note_blocked(now);
        let waited = waited(&state.blocked.times);
        let in_flight = state.gate.in_flight();
        let (departures, file) = (state.gate.departures(), state.file);
        let is_backed_off = state.is_backed_off(now);
        let observer = state.observer.as_mut()?;
        let (read_at, waited_before) = mem::replace(&mut observer.last_reading, (now, waited));
        let waited = waited.since(waited_before);
        let waits_before = mem::replace(&mut observer.waits, waits);
        let most_in_flight = mem::replace(&mut observer.most_in_flight, in_flight);
        Some(Observation {
            events: mem::take(&mut observer.events),
            departures: departures.saturating_sub(observer.awaiting_clients),
            has_waited: waited.sum() >= now.since(read_at).mul_f64(ALL_THE_TIME),
            waited,
            file,
            wait: observer.waits.since(&waits_before).quantile(0.5),
            // The last reading may have been at a time with fewer requests than now.
            most_in_flight: most_in_flight.max(in_flight),
            is_backed_off,
        })
    }

    /// Returns whether an experiment observes the gate. Each request at the origin reads this.
    pub(super) fn is_observed(&self) -> bool {
        self.is_observed.load(Ordering::Relaxed)
    }

    /// Calls `note` with the observer, if an experiment observes the gate.
    ///
    /// Cold: nearly always no experiment runs, and the caller has checked that before.
    #[cold]
    pub(super) fn observe(&self, note: impl FnOnce(&mut Observer, Moment)) {
        if let Some(observer) = &mut self.lock().observer {
            note(observer, clock::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: OriginTime = OriginTime::NEW;

    fn at(millis: u64) -> Moment {
        Moment::default() + Duration::from_millis(millis)
    }

    /// Returns the events as text, each after the instant at which its request was sent.
    fn texts(observer: &Observer) -> Vec<String> {
        let events = observer.events.iter();
        let text = events.map(|(sent, event)| format!("{:?}: {event:?}", sent.since(at(0))));
        text.collect()
    }

    #[test]
    fn events_have_the_instant_at_which_their_request_was_sent() {
        let mut observer = Observer::default();
        for number in 1..=6 {
            observer.note_departure(number, 6, at(number));
        }
        observer.note_head(1, 200, TIME, at(11));
        observer.note_end(1, RequestEnd::Whole, TIME, at(21));
        observer.note_head(2, 500, TIME, at(22));
        observer.note_end(2, RequestEnd::Failed, TIME, at(32));
        observer.note_end(3, RequestEnd::Failed, TIME, at(33));
        observer.note_end(4, RequestEnd::Abandoned, TIME, at(44));
        observer.note_head(5, 101, TIME, at(55));
        observer.note_end(5, RequestEnd::Abandoned, TIME, at(90));
        // Request 7 left before the observation began, and request 1 has ended.
        observer.note_head(7, 200, TIME, at(91));
        observer.note_end(1, RequestEnd::Whole, TIME, at(92));
        let expected = [
            "1ms: Head { took: 10ms, status: 200 }",
            "1ms: Whole { took: 20ms, status: 200 }",
            "2ms: Head { took: 20ms, status: 500 }",
            "2ms: Failed { had_head: true }",
            "3ms: Failed { had_head: false }",
            "4ms: Abandoned { had_head: false, took: 40ms }",
            "5ms: Head { took: 50ms, status: 101 }",
        ];
        assert_eq!(texts(&observer), expected);
        assert_eq!(observer.followed.keys().collect::<Vec<_>>(), [&6]);
    }

    /// The time of a slow upload or a slow reader does not count as the origin's time.
    #[test]
    fn the_time_of_the_client_is_not_counted() {
        let mut observer = Observer::default();
        for number in 1..=3 {
            observer.note_departure(number, 3, at(0));
            observer.await_client(number, true, at(0));
        }
        assert_eq!(observer.awaiting_clients, 3, "they have not departed yet");
        observer.await_client(1, false, at(5000));
        let mut time = OriginTime::NEW;
        time.uploaded(at(5000), false);
        observer.note_head(1, 200, time, at(5010));
        time.stop(at(5020));
        time.go_on(at(9020));
        observer.note_end(1, RequestEnd::Whole, time, at(9025));
        // Request 2 is answered after a part of its body; the client of request 3 disconnects.
        time.uploaded(at(6000), true);
        observer.note_head(2, 408, time, at(7000));
        observer.note_end(3, RequestEnd::Abandoned, time, at(8000));
        assert_eq!((observer.awaiting_clients, observer.followed.len()), (0, 1));
        let expected = [
            "5s: Head { took: 10ms, status: 200 }",
            "5s: Whole { took: 25ms, status: 200 }",
            "7s: Head { took: 0ns, status: 408 }",
            "8s: Abandoned { had_head: false, took: 0ns }",
        ];
        assert_eq!(texts(&observer), expected);
    }

    #[test]
    fn the_followed_requests_and_their_events_are_bounded() {
        let mut observer = Observer::default();
        let many = MAX_FOLLOWED as u64 + 10;
        for number in 0..many {
            observer.note_departure(number, 1, at(0));
        }
        assert_eq!(observer.followed.len(), MAX_FOLLOWED);
        for number in 0..many {
            observer.note_head(number, 200, TIME, at(1));
            observer.note_end(number, RequestEnd::Whole, TIME, at(2));
        }
        assert_eq!(observer.events.len(), MAX_EVENTS);
        assert!(observer.followed.is_empty());
    }
}
