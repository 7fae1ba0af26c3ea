//! State of a history: requests, leaders and followers, with the checks of each step.
//!
//! Each step acts on the table of kinds and on the model, and compares the results. `ends` has the
//! steps that end a leader.

use std::time::Duration;

use testing::Random;

use super::super::*;
use super::counts::Counts;
use super::model::{Answer, Model, Rules, Way};

const KINDS: usize = 3;

/// Request of a client. Its index is its number.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: usize,
    pub(super) came: Moment,
    /// Whether the request has its answer, was released, or has left.
    is_over: bool,
}

/// Leader, or the turn of a released follower.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) id: FlightId,
    pub(super) kind: usize,
    /// Request of the leader; `None`: it refreshes a stale answer without a client.
    pub(super) request: Option<usize>,
    /// Whether its followers are being released.
    pub(super) is_releasing: bool,
}

/// Follower, as the table of kinds identifies it.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) request: usize,
    number: u64,
}

/// One history.
pub(super) struct World {
    random: Random,
    pub(super) now: Moment,
    pub(super) rules: Rules,
    pub(super) kinds: Kinds<Answer, usize, ()>,
    pub(super) model: Model,
    pub(super) requests: Vec<Request>,
    pub(super) flying: Vec<Flying>,
    /// Followers in order of arrival.
    pub(super) followers: Vec<Follower>,
    /// Leaders that have ended.
    pub(super) ended: Vec<FlightId>,
    /// Instant of the last failure of a leader, by kind.
    pub(super) failed: [Option<Moment>; KINDS],
    pub(super) answers: u64,
    pub(super) counts: Counts,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Random(seed),
            now: Moment::from_nanos(1_000_000_000_000),
            rules: Rules::default(),
            kinds: Kinds::default(),
            model: Model::default(),
            requests: Vec::new(),
            flying: Vec::new(),
            followers: Vec::new(),
            ended: Vec::new(),
            failed: [None; KINDS],
            answers: 0,
            counts: Counts::default(),
        };
        world.reload();
        world
    }

    /// Returns a random number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let scaled = self.random.share() * count as f64;
        usize::try_from(limit::to_whole(scaled)).expect("below the count")
    }

    /// Returns a random one of these durations.
    pub(super) fn one_of(&mut self, millis: &[u64]) -> Duration {
        Duration::from_millis(millis[self.below(millis.len())])
    }

    /// Changes the settings of the route.
    fn reload(&mut self) {
        self.rules = Rules {
            keep: self.one_of(&[0, 500, 2000]),
            stale: self.one_of(&[0, 3000, 30_000]),
        };
    }

    /// Way one random step.
    pub(super) fn step(&mut self) {
        match self.below(100) {
            0..=44 => self.come(),
            45..=58 => self.end_one(|it| !it.is_releasing),
            59..=66 => (0..4).for_each(|_| self.end_one(|it| it.is_releasing)),
            67..=72 => self.leave(),
            73..=92 => self.now = self.now + self.one_of(&[0, 1, 100, 600, 1000, 3000, 11_000]),
            93..=94 => self.reload(),
            95..=96 => self.evict(),
            _ => self.end_again(),
        }
        self.check();
    }

    /// Ends all leaders, and evicts all entries.
    pub(super) fn finish(&mut self) {
        while !self.flying.is_empty() {
            self.end_one(|_| true);
            self.check();
        }
        assert!(self.followers.is_empty(), "{:?}", self.followers);
        assert!(self.requests.iter().all(|it| it.is_over));
        while self.kinds.evict().is_some() {
            assert!(self.model.evict().is_some());
        }
        assert_eq!((self.kinds.answers(), self.kinds.bytes()), (0, 0));
        assert!(self.kinds.flights.is_empty());
    }

    /// Checks that the table of kinds has the expected leaders, followers and answers.
    fn check(&mut self) {
        assert_eq!(self.kinds.flights.len(), self.flying.len());
        assert_eq!(self.kinds.answers(), self.model.answers());
        let kinds = self.model.kinds();
        let sizes = kinds.map(|kind| key_of(kind).len() + ENTRY_OVERHEAD);
        assert_eq!(self.kinds.bytes(), sizes.sum::<usize>());
        for kind in 0..KINDS {
            let mut flying = self.flying.iter().filter(|it| it.kind == kind);
            let mut followers = self.followers.iter();
            let is_followed = followers.any(|it| self.requests[it.request].kind == kind);
            match (flying.next(), flying.next()) {
                (Some(one), None) => assert_eq!(self.kinds.is_followed(&one.id), is_followed),
                (None, None) => assert!(!is_followed, "nobody answers them"),
                _ => panic!("several lead: {:?}", self.flying),
            }
        }
    }

    /// Ends a request, by this event. It must not have ended before.
    pub(super) fn end_request(&mut self, request: usize, event: &'static str) {
        let request = &mut self.requests[request];
        assert!(!request.is_over, "{request:?}: {event}");
        request.is_over = true;
        self.counts.count(event);
    }

    /// Gives a kept or stale answer to a request. It must be usable now.
    pub(super) fn give(&mut self, request: usize, answer: &Answer, event: &'static str) {
        let (kind, windows) = (self.requests[request].kind, self.rules.windows(answer));
        assert_eq!(answer.kind, kind);
        let has_failed = self.failed[kind].is_some_and(|at| at >= answer.made);
        let until = match event {
            "kept" => windows.fresh,
            _ if has_failed => windows.revalidate.max(windows.error),
            _ => windows.revalidate,
        };
        assert!(self.now < until, "{event}: {answer:?} {windows:?}");
        self.end_request(request, event);
    }

    /// Removes followers that have received a result. `answered`: their requests, in the table's
    /// order.
    pub(super) fn remove_followers(&mut self, answered: &[usize]) {
        assert!(answered.is_sorted(), "not as they came: {answered:?}");
        let left = self.followers.len() - answered.len();
        self.followers.retain(|it| !answered.contains(&it.request));
        assert_eq!(self.followers.len(), left, "all had followed");
    }

    /// Adds a request of a random kind and client.
    fn come(&mut self) {
        let (kind, request) = (self.below(KINDS), self.requests.len());
        let requester = Requester {
            client: self.below(2) as u64,
            may_lead: self.below(5) > 0,
        };
        self.requests.push(Request {
            kind,
            came: self.now,
            is_over: false,
        });
        let (rules, now, key) = (self.rules, self.now, key_of(kind));
        let (kinds, windows) = (&mut self.kinds, |it: &Answer| rules.windows(it));
        let found = kinds.look_up(&key, now, requester, windows, |()| request);
        let way = self.model.come(kind, request, requester, rules, now);
        match found {
            Lookup::Kept(answer) => {
                assert_eq!(way, Way::Kept(answer.clone()));
                self.give(request, &answer, "kept");
            }
            Lookup::Stale(answer, refresh) => {
                assert_eq!(way, Way::Stale(answer.clone(), refresh.is_some()));
                self.give(request, &answer, "stale");
                if let Some(id) = refresh {
                    self.counts.count("refresh");
                    self.add_leader(id, kind, None);
                }
            }
            Lookup::Follow((_, number)) => {
                assert_eq!(way, Way::Follow);
                self.counts.count("followed");
                self.followers.push(Follower { request, number });
            }
            Lookup::Lead(id) => {
                let is_probe = way == Way::Probe;
                assert!(is_probe || way == Way::Lead, "{way:?}");
                assert!(requester.may_lead);
                self.counts.count(if is_probe { "probed" } else { "led" });
                self.add_leader(id, kind, Some(request));
            }
            Lookup::Alone => {
                assert_eq!(way, Way::Alone);
                self.end_request(request, "alone");
            }
        }
    }

    /// Adds a leader. `request`: its request, if it has a client.
    pub(super) fn add_leader(&mut self, id: FlightId, kind: usize, request: Option<usize>) {
        self.flying.push(Flying {
            id,
            kind,
            request,
            is_releasing: false,
        });
    }

    /// Lets a random follower leave.
    fn leave(&mut self) {
        if self.followers.is_empty() {
            return;
        }
        let at = self.below(self.followers.len());
        let Follower { request, number } = self.followers.remove(at);
        let key = key_of(self.requests[request].kind);
        let was_last = self.kinds.leave(&key, number);
        assert_eq!(was_last, self.model.leave(request));
        assert!(!self.kinds.leave(&key, number), "it has left already");
        self.end_request(request, if was_last { "left last" } else { "left" });
    }

    /// Evicts an entry.
    fn evict(&mut self) {
        let evicted = self.kinds.evict();
        let is_answer = evicted.map(|until| until > Moment::default());
        assert_eq!(is_answer, self.model.evict());
        if evicted.is_some() {
            self.counts.count("evicted");
        }
    }

    /// Checks that a leader that has ended changes nothing when it ends again.
    fn end_again(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let at = self.below(self.ended.len());
        let (id, now) = (self.ended[at].clone(), self.now);
        let answer = Answer {
            kind: KINDS,
            number: 0,
            made: now,
            lifetime: Duration::from_secs(9),
            while_revalidate: Duration::ZERO,
            if_error: Duration::ZERO,
        };
        let windows = self.rules.windows(&answer);
        assert!(self.kinds.complete(&id, answer, &windows, now).is_empty());
        let failed = self.kinds.end_failed(&id, Cause::Failed, |_| windows, now);
        assert_eq!(failed, FailureResult::Over);
        let stale = self.kinds.stand_in(&id, false, |_| windows, now);
        assert_eq!(stale, None);
        self.kinds.end_too_large(&id, now);
        assert_eq!(self.kinds.release(&id), None);
        assert_eq!(self.kinds.state(&id), None);
    }
}

/// Returns the key of a kind. Each key has another length.
pub(super) fn key_of(kind: usize) -> Vec<u8> {
    vec![b'k'; kind + 1]
}
