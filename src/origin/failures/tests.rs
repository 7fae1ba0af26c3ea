use std::io;
use std::path::Path;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// The rules of an origin with so many servers, one failure of which counts, and the servers.
fn origin(count: usize, fail_timeout: &str) -> (Failures, Vec<Arc<Server>>) {
    let urls: Vec<_> = (0..count).map(|nth| format!("http://s{nth}")).collect();
    let text = format!(
        "[origins.a]\nservers = {urls:?}\nmax_fails = 1\nfail_timeout = \"{fail_timeout}\"\n\
         [[routes]]\npath = \"/\"\norigin = \"a\"\n"
    );
    let settings = config::parse(&text, Path::new("gateway.toml"), false).expect("a file");
    let origin = &settings.origins[0];
    let servers = origin.servers.iter();
    let servers: Vec<_> = servers
        .map(|it| Arc::new(Server::new("a", &it.url)))
        .collect();
    (Failures::of(origin, &servers, None), servers)
}

fn at(millis: u32) -> Moment {
    Moment::default() + SECOND * 100 + SECOND * millis / 1000
}

fn broken() -> OriginError {
    OriginError::Broken {
        server: "s".to_owned(),
        source: io::ErrorKind::UnexpectedEof.into(),
    }
}

fn invalid() -> OriginError {
    OriginError::Invalid {
        server: "s".to_owned(),
        invalid: crate::http::message::InvalidResponse::HeadTooLarge,
    }
}

fn late() -> OriginError {
    OriginError::ResponseTimeout {
        server: "s".to_owned(),
        limit: SECOND,
    }
}

fn refused() -> OriginError {
    OriginError::Connect {
        server: "s".to_owned(),
        source: io::ErrorKind::ConnectionRefused.into(),
    }
}

/// Which servers are in.
fn are_in(servers: &[Arc<Server>], now: Moment) -> Vec<bool> {
    servers.iter().map(|it| it.is_in(false, now)).collect()
}

#[test]
fn failures_in_doubt_count_once_nobody_was_answered_for_fail_timeout() {
    for error in [broken(), invalid()] {
        for (fail_timeout, works_for) in [("4s", 4000), ("10s", 10_000), ("1h", 10_000)] {
            let (failures, servers) = origin(2, fail_timeout);
            servers[0].answered(at(0));
            for millis in (0..works_for).step_by(100) {
                failures.unanswered(&servers[0], &error, SECOND, at(millis));
                assert_eq!(are_in(&servers, at(millis)), [true, true], "{millis}");
            }
            failures.unanswered(&servers[0], &error, SECOND, at(works_for));
            assert_eq!(are_in(&servers, at(works_for)), [false, true], "{error}");
        }
    }
}

#[test]
fn failures_to_connect_and_timeouts_count_whoever_was_answered() {
    for error in [late(), refused()] {
        let (failures, servers) = origin(2, "10s");
        for server in &servers {
            server.answered(at(0));
            failures.unanswered(server, &error, SECOND, at(0));
        }
        assert_eq!(are_in(&servers, at(0)), [false, false], "{error}");
    }
}

#[test]
fn a_server_that_is_in_again_has_a_tenth_of_the_time_for_its_first_answer() {
    let (failures, servers) = origin(2, "5s");
    failures.unanswered(&servers[0], &refused(), SECOND, at(0));
    assert!(!servers[0].is_in(false, at(4999)));
    for millis in [5000, 5499] {
        failures.unanswered(&servers[0], &broken(), SECOND, at(millis));
        assert!(servers[0].is_in(false, at(millis)), "{millis}");
    }
    failures.unanswered(&servers[0], &broken(), SECOND, at(5500));
    assert!(!servers[0].is_in(false, at(5500)));
    // With an answer it has all of it.
    servers[0].answered(at(11_000));
    failures.unanswered(&servers[0], &broken(), SECOND, at(15_900));
    assert!(servers[0].is_in(false, at(15_900)));
}

#[test]
fn failures_in_doubt_take_out_no_more_than_half_and_others_do() {
    for (count, out) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)] {
        let (failures, servers) = origin(count, "10s");
        for server in servers.iter().chain(&servers) {
            failures.unanswered(server, &broken(), SECOND, at(0));
        }
        let are_in = are_in(&servers, at(0));
        let left = are_in.iter().filter(|is_in| !**is_in).count();
        if count > 1 {
            assert_eq!(left, out, "of {count}");
        }
        for server in &servers {
            failures.unanswered(server, &refused(), SECOND, at(0));
        }
        assert!(!servers.iter().any(|it| it.is_in(false, at(0))) || count == 1);
    }
}
