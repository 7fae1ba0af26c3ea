//! Ends of leaders in histories, and the turns of released followers.

use super::super::*;
use super::model::{Answer, Outcome};
use super::world::{Flying, Request, World, key_of};

impl World {
    /// Ends a random one of these leaders in a random way, or ends the turn of a released follower.
    pub(super) fn end_one(&mut self, is_meant: impl Fn(&Flying) -> bool) {
        let meant = (0..self.flying.len()).filter(|index| is_meant(&self.flying[*index]));
        let meant: Vec<usize> = meant.collect();
        if meant.is_empty() {
            return;
        }
        let index = meant[self.below(meant.len())];
        let flying = self.flying.swap_remove(index);
        if flying.is_releasing {
            return self.release(flying);
        }
        match self.below(18) {
            0..=3 => self.complete(flying),
            4 => self.end_too_large(flying),
            5..=8 => self.fail(flying, Cause::Failed),
            9..=11 => self.fail(flying, Cause::Private),
            12..=13 => self.fail(flying, Cause::Left),
            14 => self.abandon(&flying),
            _ => self.lose_origin(flying),
        }
    }

    /// Completes the leader's answer.
    fn complete(&mut self, leader: Flying) {
        self.answers += 1;
        let took = self.one_of(&[0, 10, 700]);
        let answer = Answer {
            kind: leader.kind,
            number: self.answers,
            made: self.now.before(took),
            lifetime: self.one_of(&[1, 300, 1000, 3_600_000]),
            while_revalidate: self.one_of(&[0, 0, 300, 5000]),
            if_error: self.one_of(&[0, 0, 2000, 10_000]),
        };
        let (windows, now, kept) = (self.rules.windows(&answer), self.now, answer.clone());
        let answered = self.kinds.complete(&leader.id, kept, &windows, now);
        assert_eq!(answered, self.model.complete(answer, self.rules, now));
        self.remove_followers(&answered);
        for request in answered {
            let Request { kind, came, .. } = self.requests[request];
            assert!(kind == leader.kind && came <= now);
            self.end_request(request, "shared");
        }
        if let Some(request) = leader.request {
            self.end_request(request, "led on");
        }
        self.ended.push(leader.id);
    }

    /// Ends a leader whose answer is too large.
    fn end_too_large(&mut self, leader: Flying) {
        self.kinds.end_too_large(&leader.id, self.now);
        self.model.mark_unshareable(leader.kind, false, self.now);
        if let Some(request) = leader.request {
            self.end_request(request, "unshareable");
        }
        self.release(leader);
    }

    /// Abandons a leader whose answer may never end.
    fn abandon(&mut self, leader: &Flying) {
        let (key, now) = (key_of(leader.kind), self.now);
        assert_eq!(self.kinds.abandon(&key, |()| false, now), None);
        let id = self.kinds.abandon(&key, |()| true, now);
        self.model.abandon(leader.kind, now);
        if let Some(request) = leader.request {
            self.end_request(request, "abandoned");
        }
        self.ended.push(leader.id.clone());
        let (id, request) = (id.expect("it leads"), None);
        self.release(Flying {
            id,
            request,
            ..*leader
        });
    }

    /// Lets a leader wait for the origin, unless its client gets a stale answer.
    fn lose_origin(&mut self, leader: Flying) {
        let (rules, kind, now) = (self.rules, leader.kind, self.now);
        let goes_on = leader.request.is_none();
        let windows = |it: &Answer| rules.windows(it);
        let found = self.kinds.stand_in(&leader.id, goes_on, windows, now);
        assert_eq!(found, self.model.stand_in(kind, goes_on, rules, now));
        let Some((answer, answered)) = found else {
            self.flying.push(leader);
            return;
        };
        self.failed[kind] = Some(now);
        self.remove_followers(&answered);
        for request in answered.into_iter().chain(leader.request) {
            self.give(request, &answer, "stood in");
        }
        if goes_on {
            self.flying.push(leader);
        } else {
            self.ended.push(leader.id);
        }
    }

    /// Releases the next follower, which goes to the origin for itself.
    fn release(&mut self, flying: Flying) {
        let released = self.kinds.release(&flying.id);
        assert_eq!(released, self.model.release(flying.kind));
        let mut followers = self.followers.iter().map(|it| it.request);
        let first = followers.find(|it| self.requests[*it].kind == flying.kind);
        assert_eq!(released, first);
        let Some(request) = released else {
            self.ended.push(flying.id);
            return;
        };
        self.remove_followers(&[request]);
        self.end_request(request, "released");
        self.flying.push(Flying {
            request: None,
            is_releasing: true,
            ..flying
        });
    }

    /// Ends a leader without an answer for its followers.
    fn fail(&mut self, leader: Flying, cause: Cause) {
        let (rules, kind) = (self.rules, leader.kind);
        let windows = |it: &Answer| rules.windows(it);
        let now = match cause {
            Cause::Left => Moment::default(),
            Cause::Private | Cause::Failed => self.now,
        };
        let failed = self.kinds.end_failed(&leader.id, cause, windows, now);
        let outcome = self.model.fail(kind, rules, cause, now);
        let event = match cause {
            Cause::Left => "dropped",
            Cause::Private => "own answer",
            Cause::Failed => {
                self.failed[kind] = Some(now);
                "failed"
            }
        };
        match failed {
            FailureResult::Stale(answer, answered) => {
                assert_eq!(cause, Cause::Failed);
                assert_eq!(outcome, Outcome::Stale(answer.clone(), answered.clone()));
                self.remove_followers(&answered);
                for request in answered.into_iter().chain(leader.request) {
                    self.give(request, &answer, "stale at failure");
                }
                self.ended.push(leader.id);
                return;
            }
            FailureResult::Next(request, id) => {
                assert_eq!(outcome, Outcome::Next(request));
                self.remove_followers(&[request]);
                self.counts.count("promoted");
                self.add_leader(id, kind, Some(request));
                self.ended.push(leader.id);
            }
            FailureResult::Alone => {
                assert_eq!(outcome, Outcome::Alone);
                let request = None;
                self.release(Flying { request, ..leader });
            }
            FailureResult::Over => {
                assert_eq!(outcome, Outcome::Over);
                self.ended.push(leader.id);
            }
        }
        if let Some(request) = leader.request {
            self.end_request(request, event);
        }
    }
}
