//! Tests that the script of a waiting room decides as `limit::WaitingRoom` does.

use std::num::NonZeroU32;
use std::time::Duration;

use gateway::store::{RoomCall, RoomDone, RoomOp, RoomReply, Store};
use limit::{Drawn, Lottery, LotteryKeys, Moment, Polled, Rate, RoomLimits, WaitingRoom};

use super::at;
use super::server::{Server, in_redis, run};
use crate::support::night::day_or_night;
use crate::support::rng::Rng;

const KEYS: LotteryKeys = [1, 2, 3, 4, 5, 6];

fn limits(sessions: u32, admit: Rate) -> RoomLimits {
    RoomLimits {
        sessions: NonZeroU32::new(sessions),
        admit,
        idle: Duration::from_secs(7),
        claim: Duration::from_secs(4),
        opens: None,
        is_paused: false,
    }
}

/// A room in Redis, as one gateway uses it.
struct Shared<'s> {
    store: &'s Store,
    name: &'s str,
    limits: (RoomLimits, Moment),
    known: (u64, u64),
}

impl<'s> Shared<'s> {
    fn new(store: &'s Store, name: &'s str, limits: RoomLimits) -> Self {
        Self {
            store,
            name,
            limits: (limits, at(0)),
            known: (0, 0),
        }
    }

    async fn ask(&self, ops: &[RoomOp], now: Moment) -> RoomReply {
        let call = RoomCall {
            room: self.name,
            limits: self.limits,
            life: 99,
            known: self.known,
            lotteries: 0,
            keys: KEYS,
            ops,
            at: Some(now),
        };
        self.store.call(&call).await.expect("it answers")
    }

    async fn one(&self, op: RoomOp, now: Moment) -> RoomDone {
        let reply = self.ask(&[op], now).await;
        reply.done.expect("it was done")[0]
    }

    /// Draws. Fails unless the visitor gets this number, and is inside as expected.
    async fn draw(&self, number: u64, is_inside: bool, millis: u64) {
        let done = self.one(RoomOp::Draw, at(millis)).await;
        assert_eq!(done, RoomDone::Drawn(number, is_inside), "{}", self.name);
    }
}

/// The same room in memory and in Redis.
struct Both<'s> {
    room: WaitingRoom,
    shared: Shared<'s>,
    rng: Rng,
    /// Number of visitors who entered in time.
    entered: u32,
}

impl Both<'_> {
    async fn agree(&self, op: RoomOp, expected: RoomDone, now: Moment) {
        let done = self.shared.one(op.clone(), now).await;
        assert_eq!(done, expected, "{op:?} {now:?} in {}", self.shared.name);
    }

    async fn tell(&self, position: u64, seconds: u64, now: Moment) {
        let after = Duration::from_secs(seconds);
        let due = RoomOp::PollDue { position, after };
        self.agree(due, RoomDone::Count(Some(0)), now).await;
    }

    async fn draw(&mut self, now: Moment) {
        match self.room.draw(KEYS, now) {
            Drawn::Inside(number) => {
                let inside = RoomDone::Drawn(number, true);
                self.agree(RoomOp::Draw, inside, now).await;
            }
            Drawn::Waits(number, waiting) => {
                let waits = RoomDone::Drawn(number, false);
                self.agree(RoomOp::Draw, waits, now).await;
                self.tell(number, waiting.retry_after, now).await;
            }
            Drawn::NoNumber => panic!("there is no end of numbers"),
        }
    }

    async fn come(&mut self, number: u64, now: Moment) {
        let come = RoomOp::Come {
            position: number,
            number,
            is_again: false,
        };
        match self.room.poll(number, KEYS, now) {
            Polled::Inside(call) => {
                self.entered += 1;
                // The script counts from the instant at which the call expires.
                let called = call.until.before(self.room.limits().claim);
                self.agree(come, RoomDone::Came(Some(called)), now).await;
            }
            polled => {
                self.agree(come, RoomDone::Came(None), now).await;
                if let Polled::Waits(waiting) = polled {
                    self.tell(number, waiting.retry_after, now).await;
                }
            }
        }
    }

    /// Both first call visitors who are due by the old limits.
    async fn retune(&mut self, now: Moment) {
        self.compare(now).await;
        let mut limits = *self.room.limits();
        limits.sessions = NonZeroU32::new(1 + u32::try_from(self.rng.within(0, 6)).expect("small"));
        limits.is_paused = self.rng.percent(25);
        self.room.retune(limits, KEYS, now);
        self.shared.limits = (limits, now);
    }

    async fn step(&mut self, now: Moment) {
        let number = 1 + self.rng.within(0, self.room.drawn() + 2);
        match self.rng.within(0, 100) {
            0..35 => self.draw(now).await,
            35..70 => {
                // Mostly a visitor that is called, or soon will be.
                let called = self.room.drawn() - self.room.state().waiting;
                let near = (called + 3).saturating_sub(self.rng.within(0, 8));
                let number = if self.rng.percent(80) { near } else { number };
                self.come(number, now).await;
            }
            70..90 => {
                let is_inside = self.room.touch(number, KEYS, now).into();
                let op = RoomOp::Touch {
                    number,
                    is_sure: false,
                    ago: Duration::ZERO,
                };
                self.agree(op, RoomDone::Count(Some(is_inside)), now).await;
            }
            90..93 => {
                let count = RoomDone::Count(Some(self.room.call(2, KEYS, now)));
                self.agree(RoomOp::Call(2), count, now).await;
            }
            93 => {
                let count = RoomDone::Count(Some(self.room.empty(KEYS, now)));
                self.agree(RoomOp::Empty, count, now).await;
            }
            94..97 => self.retune(now).await,
            _ => {}
        }
        self.compare(now).await;
    }

    async fn compare(&mut self, now: Moment) {
        let reply = self.shared.ask(&[], now).await;
        self.room.advance(KEYS, now);
        let state = self.room.state();
        let (found, name) = (&reply.snapshot, self.shared.name);
        let waiting = found.drawn - found.called;
        let seen = (found.drawn, waiting, found.inside, found.pending);
        let expected = (self.room.drawn(), state.waiting, state.inside, state.called);
        assert_eq!(seen, expected, "{now:?} in {name}");
        assert_eq!(found.counts, self.room.counts(), "{now:?} in {name}");
        assert!(found.inside + found.pending <= 6);
    }
}

/// Random visitors, operators and limits have the same results in Redis and in memory.
#[test]
fn it_decides_as_in_memory() {
    let server = Server::start();
    let mut entered = 0;
    let seeds = day_or_night(4, 12);
    for seed in 0..seeds {
        let admit = match seed % 2 {
            0 => Rate::UNLIMITED,
            _ => "4r/s".parse().expect("a rate"),
        };
        let limits = limits(3, admit);
        let name = format!("seed-{seed}");
        run(async {
            let store = server.store();
            let mut both = Both {
                room: WaitingRoom::new(limits, at(0)),
                shared: Shared::new(&store, &name, limits),
                rng: Rng::of(seed, 0),
                entered: 0,
            };
            let mut now = 0;
            for _ in 0..400 {
                now += both.rng.within(0, 700);
                both.step(at(now)).await;
            }
            entered += both.entered;
        });
    }
    assert!(u64::from(entered) * 12 > 200 * seeds, "{entered}");
}

/// Numbers that a failover of Redis loses are not given again.
#[test]
fn a_store_that_lost_its_last_writes_gives_no_number_twice() {
    in_redis(async |_, store| {
        let mut shared = Shared::new(&store, "lossy", limits(1, Rate::UNLIMITED));
        shared.draw(1, true, 0).await;
        shared.draw(2, false, 1).await;
        // A gateway knows more than the store: the last draws were lost.
        shared.known = (7, 3);
        shared.draw(1008, false, 2).await;
        let reply = shared.ask(&[], at(3)).await;
        assert_eq!((reply.snapshot.drawn, reply.snapshot.called), (1008, 3));
        // A session that its gateway confirms is restored.
        for (number, is_sure, found) in [(3, false, 0), (3, true, 1), (2000, true, 0)] {
            let op = RoomOp::Touch {
                number,
                is_sure,
                ago: Duration::from_secs(1),
            };
            let done = shared.one(op, at(4)).await;
            assert_eq!(done, RoomDone::Count(Some(found)), "{number}");
        }
    });
}

/// Numbers drawn in an outage come after all numbers drawn before the store was back.
///
/// The store reports them once, however often it is asked.
#[test]
fn numbers_of_an_outage_come_behind_the_others() {
    in_redis(async |_, store| {
        let shared = Shared::new(&store, "marks", limits(1, Rate::UNLIMITED));
        for number in 1..=3 {
            shared.draw(number, number == 1, 0).await;
        }
        let mark = RoomOp::Mark {
            outage: 5,
            count: 10,
        };
        let other = RoomOp::Mark {
            outage: 6,
            count: 2,
        };
        for op in [mark.clone(), mark, RoomOp::Marked(5)] {
            assert_eq!(shared.one(op, at(1)).await, RoomDone::Count(Some(3)));
        }
        assert_eq!(shared.one(other, at(2)).await, RoomDone::Count(Some(13)));
        let unknown = shared.one(RoomOp::Marked(7), at(2)).await;
        assert_eq!(unknown, RoomDone::Count(None));
        shared.draw(16, false, 3).await;
    });
}

/// The gateways compute the order of a lottery, because all know its secret.
#[test]
fn an_opening_is_a_lottery_of_all_who_came_before() {
    in_redis(async |_, store| {
        let opening = RoomLimits {
            opens: Some(at(5000)),
            ..limits(2, Rate::UNLIMITED)
        };
        let shared = Shared::new(&store, "opening", opening);
        for number in 1..=10 {
            shared.draw(number, false, number).await;
        }
        let reply = shared.ask(&[], at(4999)).await;
        assert!(!reply.snapshot.is_open && reply.snapshot.lotteries.is_empty());
        // A gateway that does not know the lottery is informed, and its operation has no effect.
        let reply = shared.ask(&[RoomOp::Draw], at(5000)).await;
        assert!(reply.snapshot.is_open && reply.done.is_none());
        assert_eq!(reply.snapshot.drawn, 10);
        let lottery = Lottery {
            first: 0,
            count: 10,
            keys: KEYS,
        };
        assert_eq!(reply.snapshot.lotteries, [lottery]);
        assert_eq!((reply.snapshot.called, reply.snapshot.pending), (2, 2));
    });
}
