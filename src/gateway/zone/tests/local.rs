//! Tests of requests on the supervisor's own thread, which are answered without a message.
//!
//! The supervisor can be called directly once its actor has started and has no pending messages.

use super::super::joining::Joined;
use super::super::supervisor::Crash;
use super::*;

impl Bench {
    fn join_at_once(&self, key: &str, limit: Limit) -> Joined<'static> {
        self.zone.join_at_once(self.request(key, limit))
    }

    /// Checks that a request is admitted at once, and uses the admission.
    fn passes_at_once(&self, key: &str, limit: Limit) {
        let Joined::ZoneAdmission(admission) = self.join_at_once(key, limit) else {
            panic!("no admission of {key}");
        };
        admission.take();
    }

    /// Checks that a request waits for its answer.
    fn waits_for_answer(&self, key: &str, limit: Limit) -> Joining<'static> {
        let Joined::Waiting(waiting) = self.join_at_once(key, limit) else {
            panic!("{key} has an answer at once");
        };
        waiting
    }
}

#[actix::test]
async fn a_request_that_need_not_wait_is_decided_without_the_event_loop() {
    let bench = Bench::new("1r/s", 9);
    // The actor has not started yet.
    Bench::end(bench.waits_for_answer("a", burst(0))).await;
    bench.passes_at_once("b", burst(0));
    let Joined::Rejected(key, rejection) = bench.join_at_once("b", burst(0)) else {
        panic!("the bucket is full");
    };
    assert_eq!((&*key, rejection.reason), (&b"b"[..], Rejected::Burst));
    let waiting = bench.waits_for_answer("b", burst(1));
    bench.advance(SECOND).await;
    waiting.await.unwrap().take();
}

#[actix::test]
async fn no_request_overtakes_a_message_that_was_sent_before_it() {
    let mut bench = Bench::new("1r/s", 9);
    Bench::settle().await;
    bench.retune("2r/s".parse().unwrap());
    // The message of the retune is not handled yet.
    Bench::end(bench.waits_for_answer("a", burst(0))).await;
    bench.passes_at_once("b", burst(1));
    let mut waiting = bench.waits_for_answer("b", burst(1));
    // Half a second at the new rate.
    bench.advance(500 * MS).await;
    used(&mut waiting).await;
}

#[test]
fn after_a_panic_no_request_is_answered_before_the_restart() {
    run_alone(async {
        let bench = Bench::new("1r/s", 9);
        Bench::settle().await;
        bench.zone.crash(&Key::from(&b"a"[..]), Crash::Supervisor);
        // The state may be half changed.
        let waiting = bench.waits_for_answer("a", burst(0));
        waiting.await.expect("admitted after the restart").take();
        let next = bench.join_at_once("a", burst(0));
        assert!(matches!(next, Joined::Rejected(..)));
    });
}
