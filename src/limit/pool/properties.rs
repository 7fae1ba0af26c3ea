//! Gateways beside a naive pool, which lends whatever is free and forgets nothing.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// What happens to one of the gateways.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request comes: it starts if it may.
    Comes,
    /// A request ends.
    Ends,
    /// It calls, if a call is due: the answer arrives after so many steps of its own.
    Calls,
    /// The answer arrives.
    Answered,
    /// It does not arrive, though the pool had the call.
    Lost,
    /// The call does not arrive.
    Failed,
    /// The pool is reached another way: whether it had the call, nobody knows.
    Reconnects { has_call: bool },
    /// Milliseconds pass for all.
    Passes(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Comes),
        3 => Just(Step::Ends),
        4 => Just(Step::Calls),
        6 => Just(Step::Answered),
        1 => Just(Step::Lost),
        1 => Just(Step::Failed),
        1 => any::<bool>().prop_map(|has_call| Step::Reconnects { has_call }),
        2 => (0..60_u64).prop_map(Step::Passes),
        1 => (0..3000_u64).prop_map(Step::Passes),
    ]
}

/// A gateway, and what the naive pool knows of it.
struct Gateway {
    borrower: Borrower,
    in_use: usize,
    waiting: usize,
    call: Option<(PoolCall, Moment)>,
    lent: usize,
    lease_end: Moment,
}

const MAX_IN_FLIGHT: usize = 5;

impl Gateway {
    fn needs(&self) -> PlaceNeeds {
        PlaceNeeds {
            in_use: self.in_use,
            waiting: self.waiting,
            most: MAX_IN_FLIGHT,
            weight: 1,
            ..PlaceNeeds::default()
        }
    }

    fn start(&mut self, now: Moment) {
        while self.waiting > 0 && self.in_use < self.borrower.bound(now) {
            self.waiting -= 1;
            self.in_use += 1;
            self.borrower.started(self.in_use);
            // The pool's lease is later than the gateway's: it has not given its places to others.
            assert!(now < self.lease_end && self.in_use <= self.lent);
        }
    }
}

/// The pool has the call of a gateway.
fn arrives(gateways: &mut [Gateway], nth: usize) -> PoolReply {
    let (call, sent) = gateways[nth].call.expect("a call");
    let others = |gateways: &[Gateway]| -> usize {
        let other = gateways
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != nth);
        other.map(|(_, it)| it.lent).sum()
    };
    assert!(
        call.held <= gateways[nth].lent,
        "it holds what it was not lent"
    );
    let free = MAX_IN_FLIGHT - others(gateways) - call.held;
    let lent = call.held + call.wish.saturating_sub(call.held).min(free);
    gateways[nth].lent = lent;
    gateways[nth].lease_end = sent + POOL_LEASE;
    let others_wait = gateways.iter().any(|it| it.waiting > 0);
    PoolReply {
        lent,
        keeps: if others_wait { 1 } else { lent },
        others_wait,
        is_scarce: free == 0,
        counts: PoolCounts {
            of: MAX_IN_FLIGHT,
            gateways: 3,
            ..PoolCounts::default()
        },
        members: KnownMembers::default(),
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn a_gateway_never_uses_more_than_it_was_lent(
        steps in prop::collection::vec((0..3_usize, step()), 1..300),
    ) {
        let mut now = Moment::from_nanos(1_000_000_000_000);
        let mut gateways: Vec<Gateway> = (0..3)
            .map(|_| Gateway {
                borrower: Borrower::new(PoolLimits {
                    most: MAX_IN_FLIGHT,
                    orphan: Duration::from_secs(75),
                    without: WithoutPool::Closed,
                    gateways: None,
                }),
                in_use: 0,
                waiting: 0,
                call: None,
                lent: 0,
                lease_end: Moment::default(),
            })
            .collect();
        for (nth, step) in steps {
            match step {
                Step::Comes => gateways[nth].waiting += 1,
                Step::Ends if gateways[nth].in_use > 0 => {
                    let gateway = &mut gateways[nth];
                    gateway.in_use -= 1;
                    gateway.borrower.ended(gateway.in_use, now);
                    prop_assert!(gateway.borrower.held() >= gateway.in_use);
                }
                Step::Calls => {
                    let gateway = &mut gateways[nth];
                    let needs = gateway.needs();
                    if gateway.borrower.due(needs).is_some_and(|due| due <= now) {
                        let call = gateway.borrower.call(needs, now);
                        prop_assert!(call.in_use <= call.usable && call.usable <= call.wish);
                        gateway.call = Some((call, now));
                    }
                }
                Step::Answered if gateways[nth].call.is_some() => {
                    let reply = arrives(&mut gateways, nth);
                    gateways[nth].call = None;
                    let needs = gateways[nth].needs();
                    gateways[nth].borrower.answered(&reply, needs, now);
                }
                Step::Lost if gateways[nth].call.is_some() => {
                    arrives(&mut gateways, nth);
                    gateways[nth].call = None;
                    gateways[nth].borrower.failed();
                }
                Step::Failed if gateways[nth].call.take().is_some() => {
                    gateways[nth].borrower.failed();
                }
                Step::Reconnects { has_call } => {
                    if has_call && gateways[nth].call.is_some() {
                        arrives(&mut gateways, nth);
                    }
                    gateways[nth].call = None;
                    gateways[nth].borrower.reconnect();
                }
                Step::Passes(millis) => now = now + Duration::from_millis(millis),
                _ => {}
            }
            gateways[nth].start(now);
            let at_origin: usize = gateways.iter().map(|it| it.in_use).sum();
            prop_assert!(at_origin <= MAX_IN_FLIGHT, "{at_origin} at the origin");
            for gateway in &gateways {
                prop_assert!(gateway.borrower.held() <= gateway.lent);
            }
        }
    }
}
