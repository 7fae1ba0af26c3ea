//! Tests of a group of servers.

use super::super::test_servers::{SECOND, late, origin};
use super::*;
use crate::origin::good_answers::Client;
use crate::origin::health::MaxFails;
use crate::origin::in_flight_table::Sender;

/// Returns a group and its servers. `more`: further fields of the origin.
fn group(servers: &str, more: &str) -> (Arc<Group>, Vec<Arc<Server>>) {
    let (origin, servers) = origin(&format!("servers = [{servers}]\n{more}"));
    (Group::new(&origin, &servers).expect("a group"), servers)
}

fn at(seconds: u64) -> Moment {
    Moment::default() + SECOND * 100 + SECOND * u32::try_from(seconds).unwrap()
}

/// Returns the weight, in thousandths, and the limit of each server.
fn weights(group: &Group, now: Moment) -> Vec<(u64, Option<usize>)> {
    let candidates = group.candidates(now).into_iter();
    candidates.map(|it| (it.weight, it.max_in_flight)).collect()
}

/// Rule by which one failure takes a server out for three seconds.
const OUT: MaxFails = MaxFails {
    in_a_row: 1,
    fail_timeout: Duration::from_secs(3),
};

fn fail(server: &Server, now: Moment) {
    server.note_no_answer(&late(), Some(OUT), SECOND, now);
}

const TWO: &str = "{ url = \"http://a\", weight = 2, max_in_flight = 10 }, \"http://b\"";

#[test]
fn weight_and_limit_of_a_recovered_server_grow_evenly() {
    let (group, servers) = group(TWO, "slow_start = \"10s\"");
    assert_eq!(weights(&group, at(0)), [(2000, Some(10)), (1000, None)]);
    servers[0].health.note_return(at(0));
    for (seconds, weight, limit) in [(0, 2, 1), (1, 200, 1), (5, 1000, 5), (9, 1800, 9)] {
        let expected = [(weight, Some(limit)), (1000, None)];
        assert_eq!(weights(&group, at(seconds)), expected, "{seconds}");
    }
    assert_eq!(weights(&group, at(10)), [(2000, Some(10)), (1000, None)]);
}

#[test]
fn limits_are_full_while_all_servers_recovered_recently() {
    let (group, servers) = group(TWO, "slow_start = \"10s\"");
    servers[0].health.note_return(at(0));
    servers[1].health.note_return(at(4));
    assert_eq!(weights(&group, at(5)), [(1000, Some(10)), (100, None)]);
    assert_eq!(weights(&group, at(14)), [(2000, Some(10)), (1000, None)]);
    let one = "{ url = \"http://a\", max_in_flight = 10 }";
    let (alone, servers) = self::group(one, "slow_start = \"10s\"");
    servers[0].health.note_return(at(0));
    assert_eq!(weights(&alone, at(0)), [(1000, Some(10))]);
}

#[test]
fn a_server_is_back_when_fail_timeout_is_over_or_when_it_answers() {
    let (group, servers) = group(TWO, "slow_start = \"10s\"");
    fail(&servers[0], at(0));
    assert!(!group.candidates(at(2))[0].is_in);
    assert_eq!(weights(&group, at(4))[0], (200, Some(1)));
    // The slow start began when `fail_timeout` ended, not with the first answer.
    servers[0].note_good_answer(Client::of(None), at(4));
    assert_eq!(weights(&group, at(8))[0], (1000, Some(5)));
    assert_eq!(weights(&group, at(13))[0], (2000, Some(10)));
}

#[test]
fn requests_at_servers_that_are_out_do_not_lower_the_limit_of_others() {
    let servers =
        "{ url = \"http://a\", max_in_flight = 2 }, { url = \"http://b\", max_in_flight = 3 }";
    let (group, servers) = group(servers, "");
    assert_eq!(group.server_limit(at(0)), Some(5));
    let at_second = &servers[1].in_flight;
    let enter = || at_second.enter(Sender::default(), at(0));
    let mut requests = vec![enter(), enter(), enter()];
    fail(&servers[1], at(0));
    // Three requests are still there, and two more may be at the first server.
    assert_eq!(group.server_limit(at(1)), Some(5));
    requests.pop();
    assert_eq!(group.server_limit(at(1)), Some(4));
    fail(&servers[0], at(1));
    // No server is left: the waiters leave the gate, and get an error.
    assert_eq!(group.server_limit(at(2)), None);
    assert_eq!(group.server_limit(at(3)), Some(3));
    assert_eq!(group.server_limit(at(4)), Some(5));
}

#[test]
fn the_limits_of_the_servers_in_use_add_up_unless_one_takes_any_number() {
    let limited = "{ url = \"http://a\", max_in_flight = 4 }";
    let backup = "{ url = \"http://b\", max_in_flight = 3, backup = true }";
    let unlimited_backup = "{ url = \"http://b\", backup = true }";
    // Other server, which of the servers fails, and the limit before and after that.
    for (other, failing, before, after) in [
        // A backup stands in, and adds nothing before.
        (backup, 0, Some(4), Some(3)),
        // A backup without a limit takes what the other cannot.
        (unlimited_backup, 1, None, Some(4)),
        ("\"http://b\"", 1, None, Some(4)),
    ] {
        let (group, servers) = group(&format!("{limited}, {other}"), "");
        assert_eq!(group.server_limit(at(0)), before);
        fail(&servers[failing], at(0));
        assert_eq!(group.server_limit(at(1)), after);
    }
}
