//! Leaders that fail, or leave.

use super::*;

#[test]
fn the_next_one_leads_when_the_leader_leaves() {
    let mut table = Table::new(NEVER);
    let mut id = table.lead(0);
    for now in 1..=5 {
        table.follow(now, true);
    }
    // However many leave: that is no failure of the origin.
    for waiter in 1..=4 {
        let failed = table.dropped(&id);
        id = table.next(failed, waiter);
    }
    assert_eq!(table.complete(&id, 7, 9), [5]);
}

#[test]
fn nothing_is_left_of_a_leader_that_nobody_followed() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    assert_eq!(table.dropped(&id), Failed::Over);
    let id = table.lead(1);
    assert_eq!(table.failed(&id, 2), Failed::Over);
    let id = table.lead(2);
    let follower = table.follow(3, true);
    assert!(table.kinds.leave(KEY, follower));
    assert_eq!(table.failed(&id, 4), Failed::Over);
    assert_eq!(table.flights(), 0);
    assert_eq!(table.kinds.bytes(), 0, "nor is it remembered");
}

#[test]
fn the_second_failure_in_a_row_lets_all_go_on() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    for now in 1..=4 {
        table.follow(now, true);
    }
    let failed = table.failed(&id, 10);
    let id = table.next(failed, 1);
    // One that leaves between changes nothing.
    let failed = table.dropped(&id);
    let id = table.next(failed, 2);
    assert_eq!(table.failed(&id, 20), Failed::Alone);
    assert_eq!(table.kinds.release(&id), Some(3));
    assert_eq!(table.kinds.release(&id), Some(4));
    assert_eq!(table.kinds.release(&id), None);
    // One at a time probes the origin, and no other waits for it, until its answer may be shared.
    let probe = table.lead(20 + 9_999);
    assert_eq!(table.ask(20 + 9_999), Lookup::Alone);
    assert_eq!(table.failed(&probe, 20 + 9_999), Failed::Over);
    let probe = table.lead(20_000);
    assert_eq!(table.ask(20_000), Lookup::Alone);
    assert_eq!(table.dropped(&probe), Failed::Over);
    let probe = table.lead(20_001);
    assert_eq!(table.ask(20_001), Lookup::Alone);
    assert_eq!(table.complete(&probe, 7, 20_002), [0; 0]);
    table.lead(20_003);
    table.follow(20_004, true);
}

#[test]
fn a_probe_that_outlasts_the_mark_is_followed() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    table.follow(1, true);
    let failed = table.failed(&id, 2);
    let id = table.next(failed, 1);
    table.follow(3, true);
    assert_eq!(table.failed(&id, 4), Failed::Alone);
    assert_eq!(table.kinds.release(&id), Some(2));
    assert_eq!(table.ask_with(KEY, 5, true), Lookup::Follow(KEY.into(), 4));
    assert_eq!(table.kinds.release(&id), Some(3));
    assert_eq!(table.kinds.release(&id), None);
    assert_eq!(table.ask_with(KEY, 6, false), Lookup::Alone);
    let probe = table.lead(6);
    table.follow(10_004, true);
    let failed = table.failed(&probe, 10_005);
    let id = table.next(failed, 4);
    table.follow(10_006, true);
    assert_eq!(table.complete(&id, 7, 10_007), [5]);
}

#[test]
fn a_status_of_one_request_is_no_answer_to_the_others_and_no_failure_of_the_origin() {
    let mut table = Table::new(until(100, 100, 10_000));
    let id = table.lead(0);
    table.follow(1, true);
    table.follow(2, true);
    let failed = table.has_own_answer(&id, 3);
    let id = table.next(failed, 1);
    assert_eq!(table.complete(&id, 7, 4), [2]);
    assert_eq!(table.ask(5), Lookup::Kept(7));
    // No stale answer stands in for it.
    let id = table.lead(100);
    table.follow(101, true);
    let failed = table.has_own_answer(&id, 102);
    let id = table.next(failed, 3);
    assert_eq!(table.failed(&id, 103), Failed::Stale(7, Vec::new()));
    let Lookup::Stale(7, Some(again)) = table.ask(1103) else {
        panic!("it is fetched anew");
    };
    // The origin answers again.
    assert_eq!(table.has_own_answer(&again, 1104), Failed::Over);
    // One client alone has had that status so far, so the answer is still good in trouble.
    let id = table.lead(1105);
    assert_eq!(table.failed(&id, 1106), Failed::Stale(7, Vec::new()));
    assert_eq!(table.kinds.answers(), 1);
}

#[test]
fn what_two_clients_get_as_their_own_status_ends_the_answer_of_before() {
    let mut table = Table::new(until(100, 100, 10_000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    for (client, answers) in [(1, 1), (1, 1), (2, 0)] {
        table.client = client;
        let id = table.lead(100);
        assert_eq!(table.has_own_answer(&id, 101), Failed::Over);
        assert_eq!(table.kinds.answers(), answers);
    }
}

#[test]
fn an_origin_with_such_a_status_for_all_makes_no_second_crowd_wait() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    table.follow(1, true);
    table.follow(2, true);
    let failed = table.has_own_answer(&id, 3);
    let id = table.next(failed, 1);
    assert_eq!(table.has_own_answer(&id, 4), Failed::Alone);
    assert_eq!(table.kinds.release(&id), Some(2));
    assert_eq!(table.kinds.release(&id), None);
    // As long as a request comes every ten seconds, none waits for another one.
    for now in (5..100_000).step_by(9_000) {
        let probe = table.lead(now);
        for _ in 0..3 {
            assert_eq!(table.ask(now), Lookup::Alone);
        }
        assert_eq!(table.has_own_answer(&probe, now), Failed::Over);
    }
}

#[test]
fn answers_of_their_own_for_two_clients_in_a_row_are_those_of_all_though_nobody_waits() {
    for (second, ends) in [(2, true), (1, false)] {
        let mut table = Table::new(NEVER);
        for client in [1, second] {
            table.client = client;
            let id = table.lead(0);
            assert_eq!(table.has_own_answer(&id, 1), Failed::Over);
        }
        table.client = 3;
        let id = table.lead(2);
        let found = table.ask(2);
        assert_eq!(found == Lookup::Alone, ends);
        assert_eq!(matches!(found, Lookup::Follow(..)), !ends);
        // One answer that may be shared ends that, and so do ten seconds.
        table.complete(&id, 7, 3);
        table.client = 1;
        let id = table.lead(4);
        assert_eq!(table.has_own_answer(&id, 5), Failed::Over);
        table.client = 2;
        let id = table.lead(10_005);
        assert_eq!(table.has_own_answer(&id, 10_005), Failed::Over);
        table.lead(10_006);
        table.follow(10_007, true);
    }
}

#[test]
fn failures_are_counted_for_one_crowd() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    assert_eq!(table.failed(&id, 1), Failed::Over);
    let id = table.lead(2);
    table.follow(3, true);
    let failed = table.failed(&id, 4);
    let id = table.next(failed, 1);
    table.follow(5, true);
    assert_eq!(table.complete(&id, 7, 6), [2]);
}

#[test]
fn only_one_that_may_lead_does() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    table.follow(1, false);
    table.follow(2, true);
    table.follow(3, false);
    table.follow(4, true);
    let failed = table.dropped(&id);
    let id = table.next(failed, 2);
    // The one before it goes on waiting.
    assert_eq!(table.complete(&id, 7, 5), [1, 3, 4]);
}

#[test]
fn followers_of_whom_none_may_lead_go_on_by_themselves() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    table.follow(1, false);
    table.follow(2, false);
    assert_eq!(table.dropped(&id), Failed::Alone);
    assert_eq!(table.kinds.release(&id), Some(1));
    table.follow(3, true);
    assert_eq!(table.kinds.release(&id), Some(2));
    assert_eq!(table.kinds.release(&id), Some(3));
    assert_eq!(table.kinds.release(&id), None);
    // Nobody knows whether its answers may be shared.
    assert!(matches!(table.ask(4), Lookup::Lead(_)));
}

#[test]
fn a_stale_answer_serves_all_when_the_origin_fails() {
    let mut table = Table::new(until(100, 100, 10_000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    // Stale, it serves nobody before the origin has failed.
    let id = table.lead(100);
    table.follow(110, true);
    table.follow(120, false);
    assert_eq!(table.failed(&id, 500), Failed::Stale(7, vec![1, 2]));
    assert_eq!(table.flights(), 0);
    for now in [500, 1000, 1499] {
        assert_eq!(table.ask(now), Lookup::Stale(7, None));
    }
    // After a second, one asks the origin again, behind the answer.
    let Lookup::Stale(7, Some(again)) = table.ask(1500) else {
        panic!("it is fetched anew");
    };
    assert_eq!(table.ask(1501), Lookup::Stale(7, None));
    assert_eq!(table.failed(&again, 2000), Failed::Stale(7, Vec::new()));
    assert_eq!(table.ask(2999), Lookup::Stale(7, None));
    assert!(matches!(table.ask(3000), Lookup::Stale(7, Some(_))));
}

#[test]
fn an_origin_that_works_again_ends_the_stale_answer() {
    let mut table = Table::new(until(100, 100, 10_000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let id = table.lead(100);
    assert_eq!(table.failed(&id, 500), Failed::Stale(7, Vec::new()));
    let Lookup::Stale(7, Some(again)) = table.ask(1500) else {
        panic!("it is fetched anew");
    };
    table.windows = until(1600, 1600, 20_000);
    assert_eq!(table.complete(&again, 8, 1510), [0; 0]);
    assert_eq!(table.ask(1599), Lookup::Kept(8));
    // Nor is the failure remembered.
    assert!(matches!(table.ask(1600), Lookup::Lead(_)));
}

#[test]
fn an_answer_is_of_no_use_past_all_windows() {
    let mut table = Table::new(until(100, 100, 1000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let id = table.lead(100);
    assert_eq!(table.failed(&id, 500), Failed::Stale(7, Vec::new()));
    assert_eq!(table.ask(999), Lookup::Stale(7, None));
    let id = table.lead(1000);
    table.follow(1001, true);
    let failed = table.failed(&id, 1002);
    table.next(failed, 1);
    // Nor in another crowd that began before its end.
    let mut table = Table::new(until(100, 100, 1000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let id = table.lead(100);
    assert_eq!(table.failed(&id, 1000), Failed::Over);
}

#[test]
fn a_leader_that_leaves_makes_nobody_get_a_stale_answer() {
    let mut table = Table::new(until(100, 100, 10_000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let id = table.lead(100);
    table.follow(101, true);
    let failed = table.dropped(&id);
    let id = table.next(failed, 1);
    assert_eq!(table.failed(&id, 102), Failed::Stale(7, Vec::new()));
}

#[test]
fn a_client_whose_requests_fail_does_not_keep_a_stale_answer_in_force_for_others() {
    let mut table = Table::new(until(100, 100, 100_000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    for now in [200, 1210] {
        // As long as no other client comes, its second attempt is a second later.
        let (Lookup::Stale(7, Some(id)) | Lookup::Lead(id)) = table.ask(now) else {
            panic!("it asks the origin");
        };
        assert_eq!(table.failed(&id, now + 10), Failed::Stale(7, Vec::new()));
    }
    table.client = 2;
    assert_eq!(table.ask(2000), Lookup::Stale(7, None));
    table.client = 1;
    assert_eq!(table.ask(4219), Lookup::Stale(7, None));
    table.client = 2;
    assert!(matches!(table.ask(4219), Lookup::Stale(7, Some(_))));
}
