//! Tests that the script of a waiting room decides as `limit::WaitingRoom` does.

use std::num::NonZeroU32;
use std::time::Duration;

use gateway::store::{RoomCall, RoomDone, RoomOp, RoomReply, Store};
use limit::{Drawn, Lottery, LotteryKeys, Moment, Polled, Rate, RoomLimits, WaitingRoom};

use super::at;
use super::server::{Server, run};
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

impl Shared<'_> {
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
        self.agree(
            RoomOp::PollDue { position, after },
            RoomDone::Count(Some(0)),
            now,
        )
        .await;
    }

    async fn draw(&mut self, now: Moment) {
        match self.room.draw(KEYS, now) {
            Drawn::Inside(number) => {
                let inside = RoomDone::Drawn(number, true);
                self.agree(RoomOp::Draw, inside, now).await;
            }
            Drawn::Waits(number, waiting) => {
                self.agree(RoomOp::Draw, RoomDone::Drawn(number, false), now)
                    .await;
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
                let count = self.room.call(2, KEYS, now);
                self.agree(RoomOp::Call(2), RoomDone::Count(Some(count)), now)
                    .await;
            }
            93 => {
                let count = self.room.empty(KEYS, now);
                self.agree(RoomOp::Empty, RoomDone::Count(Some(count)), now)
                    .await;
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
        assert_eq!(
            (
                reply.snapshot.drawn,
                reply.snapshot.drawn - reply.snapshot.called,
                reply.snapshot.inside,
                reply.snapshot.pending
            ),
            (self.room.drawn(), state.waiting, state.inside, state.called),
            "{now:?} in {}",
            self.shared.name
        );
        assert_eq!(
            reply.snapshot.counts,
            self.room.counts(),
            "{now:?} in {}",
            self.shared.name
        );
        assert!(reply.snapshot.inside + reply.snapshot.pending <= 6);
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
                shared: Shared {
                    store: &store,
                    name: &name,
                    limits: (limits, at(0)),
                    known: (0, 0),
                },
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
    let server = Server::start();
    run(async {
        let store = server.store();
        let mut shared = Shared {
            store: &store,
            name: "lossy",
            limits: (limits(1, Rate::UNLIMITED), at(0)),
            known: (0, 0),
        };
        assert_eq!(
            shared.one(RoomOp::Draw, at(0)).await,
            RoomDone::Drawn(1, true)
        );
        assert_eq!(
            shared.one(RoomOp::Draw, at(1)).await,
            RoomDone::Drawn(2, false)
        );
        // A gateway knows more than the store: the last draws were lost.
        shared.known = (7, 3);
        assert_eq!(
            shared.one(RoomOp::Draw, at(2)).await,
            RoomDone::Drawn(1008, false)
        );
        let reply = shared.ask(&[], at(3)).await;
        assert_eq!((reply.snapshot.drawn, reply.snapshot.called), (1008, 3));
        // A session that its gateway confirms is restored.
        for (number, is_sure, found) in [(3, false, 0), (3, true, 1), (2000, true, 0)] {
            let op = RoomOp::Touch {
                number,
                is_sure,
                ago: Duration::from_secs(1),
            };
            assert_eq!(
                shared.one(op, at(4)).await,
                RoomDone::Count(Some(found)),
                "{number}"
            );
        }
    });
}

/// Numbers drawn in an outage come after all numbers drawn before the store was back.
///
/// The store reports them once, however often it is asked.
#[test]
fn numbers_of_an_outage_come_behind_the_others() {
    let server = Server::start();
    run(async {
        let store = server.store();
        let shared = Shared {
            store: &store,
            name: "marks",
            limits: (limits(1, Rate::UNLIMITED), at(0)),
            known: (0, 0),
        };
        for number in 1..=3 {
            assert!(
                matches!(shared.one(RoomOp::Draw, at(0)).await, RoomDone::Drawn(it, _) if it == number)
            );
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
        assert_eq!(
            shared.one(RoomOp::Marked(7), at(2)).await,
            RoomDone::Count(None)
        );
        assert!(matches!(
            shared.one(RoomOp::Draw, at(3)).await,
            RoomDone::Drawn(16, false)
        ));
    });
}

/// The gateways compute the order of a lottery, because all know its secret.
#[test]
fn an_opening_is_a_lottery_of_all_who_came_before() {
    let server = Server::start();
    run(async {
        let store = server.store();
        let opening = RoomLimits {
            opens: Some(at(5000)),
            ..limits(2, Rate::UNLIMITED)
        };
        let shared = Shared {
            store: &store,
            name: "opening",
            limits: (opening, at(0)),
            known: (0, 0),
        };
        for number in 1..=10 {
            assert_eq!(
                shared.one(RoomOp::Draw, at(number)).await,
                RoomDone::Drawn(number, false)
            );
        }
        let reply = shared.ask(&[], at(4999)).await;
        assert!(!reply.snapshot.is_open && reply.snapshot.lotteries.is_empty());
        // A gateway that does not know the lottery is informed, and its operation has no effect.
        let reply = shared.ask(&[RoomOp::Draw], at(5000)).await;
        assert_eq!(
            (
                reply.snapshot.is_open,
                reply.done.clone(),
                reply.snapshot.drawn
            ),
            (true, None, 10)
        );
        let lottery = Lottery {
            first: 0,
            count: 10,
            keys: KEYS,
        };
        assert_eq!(reply.snapshot.lotteries, [lottery]);
        assert_eq!((reply.snapshot.called, reply.snapshot.pending), (2, 2));
    });
}
