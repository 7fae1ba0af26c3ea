//! Tests of a group of servers.

use super::*;
use crate::origin::error::OriginError;
use crate::origin::good_answers::Client;
use crate::origin::health::MaxFails;
use crate::origin::in_flight_table::Sender;
use crate::test_settings;

const SECOND: Duration = Duration::from_secs(1);

/// Returns a group and its servers. `more`: further fields of the origin.
fn group(servers: &str, more: &str) -> (Arc<Group>, Vec<Arc<Server>>) {
    let text = format!(
        "[origins.a]\nservers = [{servers}]\n{more}\n[[routes]]\npath = \"/\"\norigin = \"a\"\n"
    );
    let settings = test_settings::of_file(&text);
    let origin = &settings.origins[0];
    let servers = origin.servers.iter();
    let servers: Vec<_> = servers
        .map(|it| Arc::new(Server::new("a", &it.url)))
        .collect();
    (Group::of(origin, &servers).expect("a group"), servers)
}

fn at(seconds: u64) -> Moment {
    Moment::default() + SECOND * 100 + SECOND * u32::try_from(seconds).unwrap()
}

/// Returns the weight, in thousandths, and the limit of each server.
fn strengths(group: &Group, now: Moment) -> Vec<(u64, Option<usize>)> {
    let candidates = group.candidates(now).into_iter();
    candidates.map(|it| (it.weight, it.max_in_flight)).collect()
}

/// Rule by which one failure takes a server out for three seconds.
const OUT: MaxFails = MaxFails {
    in_a_row: 1,
    fail_timeout: Duration::from_secs(3),
};

fn fail(server: &Server, now: Moment) {
    let error = OriginError::ResponseTimeout {
        server: server.url().to_string(),
        limit: SECOND,
    };
    server.failed(&error, Some(OUT), SECOND, now);
}

const TWO: &str = "{ url = \"http://a\", weight = 2, max_in_flight = 10 }, \"http://b\"";

#[test]
fn weight_and_limit_of_a_recovered_server_grow_evenly() {
    let (group, servers) = group(TWO, "slow_start = \"10s\"");
    assert_eq!(strengths(&group, at(0)), [(2000, Some(10)), (1000, None)]);
    servers[0].health.note_return(at(0));
    for (seconds, weight, limit) in [(0, 2, 1), (1, 200, 1), (5, 1000, 5), (9, 1800, 9)] {
        let expected = [(weight, Some(limit)), (1000, None)];
        assert_eq!(strengths(&group, at(seconds)), expected, "{seconds}");
    }
    assert_eq!(strengths(&group, at(10)), [(2000, Some(10)), (1000, None)]);
}

#[test]
fn limits_are_full_while_all_servers_recovered_recently() {
    let (group, servers) = group(TWO, "slow_start = \"10s\"");
    servers[0].health.note_return(at(0));
    servers[1].health.note_return(at(4));
    assert_eq!(strengths(&group, at(5)), [(1000, Some(10)), (100, None)]);
    assert_eq!(strengths(&group, at(14)), [(2000, Some(10)), (1000, None)]);
    let (alone, servers) = self::group(
        "{ url = \"http://a\", max_in_flight = 10 }",
        "slow_start = \"10s\"",
    );
    servers[0].health.note_return(at(0));
    assert_eq!(strengths(&alone, at(0)), [(1000, Some(10))]);
}

#[test]
fn a_server_is_back_when_fail_timeout_is_over_or_when_it_answers() {
    let (group, servers) = group(TWO, "slow_start = \"10s\"");
    fail(&servers[0], at(0));
    assert!(!group.candidates(at(2))[0].is_in);
    assert_eq!(strengths(&group, at(4))[0], (200, Some(1)));
    // The slow start began when `fail_timeout` ended, not with the first answer.
    servers[0].answered(Client::of(None), at(4));
    assert_eq!(strengths(&group, at(8))[0], (1000, Some(5)));
    assert_eq!(strengths(&group, at(13))[0], (2000, Some(10)));
}

#[test]
fn requests_at_servers_that_are_out_take_no_room_from_others() {
    let servers =
        "{ url = \"http://a\", max_in_flight = 2 }, { url = \"http://b\", max_in_flight = 3 }";
    let (group, servers) = group(servers, "");
    assert_eq!(group.room(at(0)), Some(5));
    let at_second = &servers[1].in_flight;
    let enter = || at_second.enter(Sender::default(), at(0));
    let mut requests = vec![enter(), enter(), enter()];
    fail(&servers[1], at(0));
    // Three requests are still there, and two more may be at the first server.
    assert_eq!(group.room(at(1)), Some(5));
    requests.pop();
    assert_eq!(group.room(at(1)), Some(4));
    fail(&servers[0], at(1));
    assert_eq!(group.room(at(2)), None, "those that wait are told");
    assert_eq!(group.room(at(3)), Some(3));
    assert_eq!(group.room(at(4)), Some(5));
}

#[test]
fn a_backup_with_a_limit_stands_in_and_adds_no_room() {
    let servers = "{ url = \"http://a\", max_in_flight = 4 }, { url = \"http://b\", max_in_flight = 3, backup = true }";
    let (group, servers) = group(servers, "");
    assert_eq!(group.room(at(0)), Some(4));
    fail(&servers[0], at(0));
    assert_eq!(group.room(at(1)), Some(3));
    let servers =
        "{ url = \"http://a\", max_in_flight = 4 }, { url = \"http://b\", backup = true }";
    let (group, _) = self::group(servers, "");
    let found = group.room(at(0));
    assert_eq!(found, None, "the backup takes what the other cannot");
}

#[test]
fn a_server_without_a_limit_takes_any_number() {
    let (group, servers) = group(TWO, "");
    assert_eq!(group.room(at(0)), None);
    fail(&servers[1], at(0));
    assert_eq!(group.room(at(1)), Some(10));
}
