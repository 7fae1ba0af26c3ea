//! Tests of the rules by which failures take servers out.

use super::super::test_servers::{SECOND, broken, late, refused};
use super::*;
use crate::http::message::InvalidResponse;

/// Returns the rules of an origin with `count` servers, and the servers. One failure takes one out.
fn origin(count: usize, fail_timeout: &str) -> (Failures, Vec<Arc<Server>>) {
    let urls: Vec<_> = (0..count).map(|nth| format!("http://s{nth}")).collect();
    let (origin, servers) = super::super::test_servers::origin(&format!(
        "servers = {urls:?}\nmax_fails = 1\nfail_timeout = \"{fail_timeout}\""
    ));
    (Failures::new(&origin, &servers, None), servers)
}

fn at(millis: u32) -> Moment {
    Moment::default() + SECOND * 100 + SECOND * millis / 1000
}

fn invalid() -> OriginError {
    let (server, invalid) = ("s".to_owned(), InvalidResponse::HeadTooLarge);
    OriginError::Invalid { server, invalid }
}

fn client(last: u8) -> Client {
    Client::of(Some([10, 0, 0, last].into()))
}

/// Returns for each server whether it is in.
fn are_in(servers: &[Arc<Server>], now: Moment) -> Vec<bool> {
    servers.iter().map(|it| it.is_in(now)).collect()
}

#[test]
fn failures_in_doubt_count_after_fail_timeout_without_good_answers() {
    for error in [broken(), invalid()] {
        for (fail_timeout, works_for) in [("4s", 4000), ("10s", 10_000), ("1h", 10_000)] {
            let (failures, servers) = origin(2, fail_timeout);
            servers[0].note_good_answer(client(1), at(0));
            for millis in (0..works_for).step_by(100) {
                failures.count_no_answer(&servers[0], client(1), &error, SECOND, at(millis));
                assert_eq!(are_in(&servers, at(millis)), [true, true], "{millis}");
            }
            failures.count_no_answer(&servers[0], client(1), &error, SECOND, at(works_for));
            assert_eq!(are_in(&servers, at(works_for)), [false, true], "{error}");
        }
    }
}

#[test]
fn failed_connections_and_timeouts_of_the_only_client_always_count() {
    for error in [late(), refused()] {
        let (failures, servers) = origin(2, "10s");
        for server in &servers {
            server.note_good_answer(client(1), at(0));
            failures.count_no_answer(server, client(1), &error, SECOND, at(0));
        }
        assert_eq!(are_in(&servers, at(0)), [false, false], "{error}");
    }
}

#[test]
fn a_server_that_is_in_again_has_a_tenth_of_the_time_for_its_first_answer() {
    let (failures, servers) = origin(2, "5s");
    failures.count_no_answer(&servers[0], client(1), &refused(), SECOND, at(0));
    assert!(!servers[0].is_in(at(4999)));
    for millis in [5000, 5499] {
        failures.count_no_answer(&servers[0], client(1), &broken(), SECOND, at(millis));
        assert!(servers[0].is_in(at(millis)), "{millis}");
    }
    failures.count_no_answer(&servers[0], client(1), &broken(), SECOND, at(5500));
    assert!(!servers[0].is_in(at(5500)));
    // After an answer, the server has the whole time.
    servers[0].note_good_answer(client(1), at(11_000));
    failures.count_no_answer(&servers[0], client(1), &broken(), SECOND, at(15_900));
    assert!(servers[0].is_in(at(15_900)));
}

#[test]
fn failures_in_doubt_take_out_at_most_half_of_the_servers() {
    for (count, out) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)] {
        let (failures, servers) = origin(count, "10s");
        for server in servers.iter().chain(&servers) {
            failures.count_no_answer(server, client(1), &broken(), SECOND, at(0));
        }
        let are_out = are_in(&servers, at(0)).into_iter().filter(|is_in| !is_in);
        assert_eq!(are_out.count(), out, "of {count}");
        for server in &servers {
            failures.count_no_answer(server, client(1), &refused(), SECOND, at(0));
        }
        assert!(!servers.iter().any(|it| it.is_in(at(0))) || count == 1);
    }
}

/// Returns the number of failures of `clients`, in this order, that take a server out.
///
/// The server has answered another client before. `None`: it stays in.
fn out_after(in_a_row: u32, fails: Fails, clients: &[u8]) -> Option<usize> {
    let (mut failures, servers) = origin(2, "10s");
    failures.max_fails.in_a_row = in_a_row;
    servers[0].note_good_answer(client(100), at(0));
    let out = clients.iter().position(|it| {
        fails(&failures, &servers[0], client(*it));
        !servers[0].is_in(at(100))
    });
    out.map(|before| before + 1)
}

type Fails = fn(&Failures, &Arc<Server>, Client);

const FAILS: [Fails; 2] = [
    |it, server, client| it.count_bad_answer(server, client, "it answered 502", at(100)),
    |it, server, client| it.count_no_answer(server, client, &late(), SECOND, at(100)),
];

#[test]
fn failing_answers_and_timeouts_count_once_for_a_client_while_others_are_answered() {
    for fails in FAILS {
        for (in_a_row, clients, out) in [
            (1, &[1; 100][..], None),
            (1, &[1, 1, 2], Some(3)),
            (3, &[1; 100], None),
            (3, &[1, 2, 1, 2, 1, 2, 2, 2], None),
            (3, &[1, 1, 2, 1, 1, 3], Some(6)),
            (3, &[1, 2, 3], Some(3)),
        ] {
            assert_eq!(out_after(in_a_row, fails, clients), out, "{clients:?}");
        }
    }
}

#[test]
fn failures_of_one_client_count_after_fail_timeout_without_answers_to_others() {
    for fails in FAILS {
        // Good answers to a client say nothing about the failures of the same client.
        assert_eq!(out_after(1, fails, &[100]), Some(1));
        let (failures, servers) = origin(2, "10s");
        servers[0].note_good_answer(client(2), at(0));
        servers[0].note_good_answer(client(1), at(9_999));
        failures.count_bad_answer(&servers[0], client(1), "it answered 502", at(9_989));
        assert!(servers[0].is_in(at(9_989)));
        failures.count_bad_answer(&servers[0], client(1), "it answered 502", at(10_000));
        assert!(!servers[0].is_in(at(10_000)));
    }
}

#[test]
fn a_good_answer_ends_the_row_of_all_clients() {
    let (mut failures, servers) = origin(2, "10s");
    failures.max_fails.in_a_row = 3;
    for _ in 0..10 {
        servers[0].note_good_answer(client(100), at(0));
        for it in [1, 2, 1, 2] {
            failures.count_bad_answer(&servers[0], client(it), "it answered 502", at(100));
        }
        assert!(servers[0].is_in(at(100)));
    }
}

#[test]
fn timeouts_of_several_clients_take_out_half_of_the_servers_while_others_are_answered() {
    let (failures, servers) = origin(2, "10s");
    for server in &servers {
        server.note_good_answer(client(100), at(0));
    }
    for nth in 1..9 {
        for server in &servers {
            failures.count_no_answer(server, client(nth), &late(), SECOND, at(100));
        }
    }
    assert_eq!(
        are_in(&servers, at(100)).iter().filter(|it| **it).count(),
        1
    );
}
