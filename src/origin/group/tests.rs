use std::path::Path;

use super::*;
use crate::origin::error::OriginError;
use crate::origin::health::MaxFails;

const SECOND: Duration = Duration::from_secs(1);

/// The group of these servers, and the servers; `more`: more fields of their origin.
fn group(servers: &str, more: &str) -> (Arc<Group>, Vec<Arc<Server>>) {
    let text = format!(
        "[origins.a]\nservers = [{servers}]\n{more}\n[[routes]]\npath = \"/\"\norigin = \"a\"\n"
    );
    let settings = config::parse(&text, Path::new("gateway.toml"), false).expect("a file");
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

const TWO: &str = "{ url = \"http://a\", weight = 2, max_in_flight = 10 }, \"http://b\"";

#[test]
fn requests_at_servers_that_are_out_take_no_room_from_others() {
    let servers =
        "{ url = \"http://a\", max_in_flight = 2 }, { url = \"http://b\", max_in_flight = 3 }";
    let (group, servers) = group(servers, "");
    assert_eq!(group.room(at(0)), Some(5));
    for _ in 0..3 {
        servers[1].enter();
    }
    fail(&servers[1], at(0));
    // Three are still there, and two more may be at the first server.
    assert_eq!(group.room(at(1)), Some(5));
    servers[1].leave(|| at(1));
    assert_eq!(group.room(at(1)), Some(4));
    fail(&servers[0], at(1));
    assert_eq!(group.room(at(2)), None, "those that wait are told");
    assert_eq!(group.room(at(3)), Some(3));
    assert_eq!(group.room(at(4)), Some(5));
}

#[test]
fn a_server_without_a_limit_takes_any_number() {
    let (group, servers) = group(TWO, "");
    assert_eq!(group.room(at(0)), None);
    fail(&servers[1], at(0));
    assert_eq!(group.room(at(1)), Some(10));
}
