//! Tests of requests on the supervisor's own thread, which are answered without a message.

use super::super::joining::Joined;
use super::super::supervisor::Crash;
use super::*;

impl Bench {
    fn join_at_once(&self, key: &str, limit: Limit) -> Joined<'static> {
        self.zone.join_at_once(self.request(key, limit))
    }
}

#[actix::test]
async fn a_request_that_need_not_wait_is_decided_without_the_event_loop() {
    let bench = Bench::new("1r/s", 9);
    assert!(matches!(
        bench.join_at_once("a", burst(0)),
        Joined::Waiting(_)
    ));
    Bench::settle().await;
    let Joined::ZoneAdmission(turn) = bench.join_at_once("b", burst(0)) else {
        panic!("the bucket is empty");
    };
    turn.take();
    let Joined::Rejected(key, rejection) = bench.join_at_once("b", burst(0)) else {
        panic!("the bucket is full");
    };
    assert_eq!((&*key, rejection.reason), (&b"b"[..], Rejected::Burst));
    let Joined::Waiting(waiting) = bench.join_at_once("b", burst(1)) else {
        panic!("it is not its turn");
    };
    bench.advance(Duration::from_secs(1)).await;
    waiting.await.unwrap().take();
}

#[actix::test]
async fn no_request_overtakes_a_message_that_was_sent_before_it() {
    let mut bench = Bench::new("1r/s", 9);
    Bench::settle().await;
    bench.retune("2r/s".parse().unwrap());
    assert!(matches!(
        bench.join_at_once("a", burst(0)),
        Joined::Waiting(_)
    ));
    Bench::settle().await;
    let Joined::ZoneAdmission(turn) = bench.join_at_once("b", burst(1)) else {
        panic!("nothing is unhandled any more");
    };
    turn.take();
    let Joined::Waiting(mut waiting) = bench.join_at_once("b", burst(1)) else {
        panic!("it is not its turn");
    };
    bench.advance(Duration::from_millis(500)).await;
    let turn = peek(&mut waiting).await.expect("a turn at the new rate");
    turn.unwrap().take();
}

#[test]
fn after_a_panic_no_request_is_answered_before_the_restart() {
    let _counted = crate::observe::metrics::count_alone();
    run(async {
        let bench = Bench::new("1r/s", 9);
        Bench::settle().await;
        bench.zone.crash(&Key::from(&b"a"[..]), Crash::Supervisor);
        let Joined::Waiting(waiting) = bench.join_at_once("a", burst(0)) else {
            panic!("its state may be half changed");
        };
        waiting.await.expect("it starts again").take();
        assert!(matches!(
            bench.join_at_once("a", burst(0)),
            Joined::Rejected(..)
        ));
    });
}
