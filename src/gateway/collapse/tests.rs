//! Tests of shared answers, with the channels to their followers. Times are in seconds.

mod endless;
mod memory;
mod order;
mod readers;

use std::num::NonZeroU64;
use std::time::Duration;

use config::KeyTemplate;
use futures_util::FutureExt;

use super::*;

/// Returns a route's settings with these times in seconds.
pub(super) fn collapse(keep: u64, stale: u64) -> Collapse {
    Collapse {
        key: KeyTemplate::parse("$host$request_uri").expect("a key"),
        vary: vec!["accept-encoding".to_owned(), "accept-language".to_owned()],
        keep: Duration::from_secs(keep),
        stale: Duration::from_secs(stale),
        follow_timeout: Duration::from_secs(5),
        max_size: NonZeroU64::new(1_000_000).expect("not zero"),
        cookies: None,
    }
}

/// Key of the kind that most tests use.
const KEY: &[u8] = b"/news/";

const fn at(seconds: u64) -> Moment {
    Moment::from_nanos((1000 + seconds) * 1_000_000_000)
}

/// Returns the head of an answer without fields that arrives at this second.
fn head(collapse: &Collapse, arrived: u64) -> AnswerHead {
    let head = Head {
        status: 200,
        fields: &[],
        sent: at(arrived),
        arrived: at(arrived),
    };
    let Verdict::Shared(terms) = head.judge(collapse) else {
        panic!("it is shared");
    };
    AnswerHead {
        status: 200,
        reason: b"OK".to_vec(),
        fields: AnswerFields::default(),
        arrived: at(arrived),
        terms,
        billed: None,
    }
}

/// Requests of a route.
struct Clients {
    shared: Arc<SharedAnswers>,
    collapse: Arc<Collapse>,
}

impl Clients {
    fn new(collapse: Collapse) -> Self {
        Self {
            shared: SharedAnswers::new(1 << 20),
            collapse: Arc::new(collapse),
        }
    }

    /// Looks up a request without a client's address that may lead.
    fn ask(&self, key: &[u8], now: u64) -> CollapseLookup {
        self.ask_of(None, key, true, now)
    }

    fn ask_of(
        &self,
        client: Option<IpAddr>,
        key: &[u8],
        may_lead: bool,
        now: u64,
    ) -> CollapseLookup {
        self.shared
            .look_up(key, &self.collapse, client, may_lead, at(now))
    }

    fn lead_of(&self, key: &[u8], now: u64) -> Leader {
        match self.ask(key, now) {
            CollapseLookup::Lead(leader) => leader,
            _ => panic!("another result"),
        }
    }

    fn lead(&self, now: u64) -> Leader {
        self.lead_of(KEY, now)
    }

    fn follow(&self, now: u64) -> Follower {
        match self.ask(KEY, now) {
            CollapseLookup::Follow(follower) => follower,
            _ => panic!("another result"),
        }
    }

    /// Returns an answer whose head has just arrived, with a length.
    fn begin(&self, leader: &Leader, now: u64) -> Gathered {
        leader.gather(head(&self.collapse, now), true)
    }

    /// Returns a leader of a kind whose answer has just begun.
    fn lead_begun(&self, key: &[u8], now: u64) -> (Leader, Gathered) {
        let leader = self.lead_of(key, now);
        let gathered = self.begin(&leader, now);
        (leader, gathered)
    }

    /// Returns a leader of a kind that has gathered these bytes.
    fn gather(&self, key: &[u8], body: &[u8], now: u64) -> (Leader, Gathered) {
        let (leader, mut gathered) = self.lead_begun(key, now);
        assert!(leader.add(&mut gathered, body), "it fits");
        (leader, gathered)
    }

    /// Completes the answer of a leader.
    fn complete(&self, leader: Leader, body: &[u8], now: u64) -> Arc<SharedAnswer> {
        let mut gathered = self.begin(&leader, now);
        assert!(leader.add(&mut gathered, body), "it fits");
        leader.complete(gathered, at(now))
    }

    /// Keeps an answer of a kind, if there is room for it.
    fn try_keep(&self, key: &[u8], body: &[u8], now: u64) -> Option<Arc<SharedAnswer>> {
        let (leader, mut gathered) = self.lead_begun(key, now);
        let fits = leader.add(&mut gathered, body);
        fits.then(|| leader.complete(gathered, at(now)))
    }

    /// Keeps an answer of a kind.
    fn keep(&self, key: &[u8], body: &[u8], now: u64) -> Arc<SharedAnswer> {
        self.complete(self.lead_of(key, now), body, now)
    }

    /// Keeps answers of 9,000 bytes, of this many kinds.
    fn keep_many(&self, count: u8) -> Vec<Arc<SharedAnswer>> {
        let kinds = (0..count).map(|nth| [b's', nth]);
        kinds.map(|key| self.keep(&key, &[b'x'; 9000], 0)).collect()
    }

    fn is_kept(&self, key: &[u8], now: u64) -> bool {
        let asked = self.ask_of(None, key, false, now);
        matches!(asked, CollapseLookup::Kept(_))
    }

    /// Returns the memory that answers take.
    fn bytes(&self) -> usize {
        self.shared.kept().bytes
    }
}

/// Returns the bytes of a body; `None` if it is cut off.
fn bytes_of(body: &AnswerBody) -> Option<Vec<u8>> {
    body.read(0..body.length(), <[u8]>::to_vec)
}

/// Returns the result of a follower, if it has received one.
fn result(follower: &mut Follower) -> Option<FollowResult> {
    let result = follower.now_or_never();
    result.map(|result| result.expect("a result"))
}

fn is_waiting(follower: &mut Follower) -> bool {
    follower.now_or_never().is_none()
}

/// Returns the answer that a follower gets.
fn answer(follower: &mut Follower) -> Arc<SharedAnswer> {
    match result(follower) {
        Some(FollowResult::Answer(answer)) => answer,
        _ => panic!("another result"),
    }
}

/// Returns the leader that a follower has become.
fn promoted(follower: &mut Follower) -> Leader {
    match result(follower) {
        Some(FollowResult::Lead(leader)) => *leader,
        _ => panic!("another result"),
    }
}

/// Returns the turn of a released follower.
fn released(follower: &mut Follower) -> ReleasedTurn {
    match result(follower) {
        Some(FollowResult::Alone(turn)) => turn,
        _ => panic!("another result"),
    }
}
