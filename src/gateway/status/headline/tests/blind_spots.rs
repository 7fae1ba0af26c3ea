//! What no other figure shows: full connections, descriptors, limits without keys, shared keys.

use super::*;
use crate::observe::connections::{ConnectionCounts, IdleConnections};
use crate::status::views::{DescriptorSample, Keyless, Lately, LogSample, OnlyKey, Unanswered};

/// The headline after ten seconds that differ from the fine one by `change`.
fn told(change: impl FnOnce(&mut Sample)) -> Headline {
    let mut second = fine();
    change(&mut second);
    after(&second)
}

#[track_caller]
fn check(told: &Headline, cause: &str, severity: &str, says: &[&str]) {
    let text = [&told.title, &told.evidence, &told.remedy].map(Plain::as_str);
    let text = text.join(" ");
    let is_as_told = told.cause.as_str() == cause && told.severity.as_str() == severity;
    assert!(is_as_told, "{told:?}");
    for part in says {
        assert!(text.contains(part), "{part:?} in {told:?}");
    }
}

#[test]
fn full_connections_come_first_with_how_many_wait() {
    let full = |waiting| {
        told(|it| {
            it.origins[0].healthy = 0;
            it.zones[0].rejected = 10;
            it.connections = ConnectionCounts {
                open: 50,
                max: 50,
                is_full: true,
                waiting,
                ..ConnectionCounts::default()
            };
        })
    };
    let begin = "50 of 50 connections are in use; new clients wait in the kernel";
    let counted = full(Some(551));
    check(
        &counted,
        "connections_full",
        "bad",
        &["`server.max_connections`"],
    );
    assert_eq!(counted.title.as_str(), format!("{begin} (551 now)"));
    assert_eq!(counted.count, 0, "what they would ask for is not known");
    assert_eq!(full(None).title.as_str(), begin);
    // More connections than descriptors would not be accepted.
    let few = told(|it| {
        it.connections = ConnectionCounts {
            open: 1,
            max: 2,
            few_descriptors: true,
            is_full: true,
            ..ConnectionCounts::default()
        };
    });
    let says = [
        "The limit of file descriptors allows only 2 client connections; new clients wait in the kernel",
        "Raise the limit of file descriptors (`LimitNOFILE`",
    ];
    check(&few, "connections_full", "bad", &says);
    assert!(!few.remedy.as_str().contains("max_connections"), "{few:?}");
    // All in use, and nobody waits: the next client would.
    let just = told(|it| (it.connections.open, it.connections.max) = (50, 50));
    check(&just, "fine", "fine", &[]);
}

#[test]
fn full_connections_are_told_with_those_that_are_idle() {
    let full = |idle: IdleConnections, silence| {
        told(|it| {
            it.connections = ConnectionCounts {
                open: 50,
                max: 50,
                is_full: true,
                idle: Some(idle),
                ..ConnectionCounts::default()
            };
            it.origins[0].unanswered = Some(Unanswered {
                silence,
                ..Unanswered::default()
            });
        })
    };
    let of = |count, of_it| IdleConnections {
        count,
        most: Some(([127, 0, 0, 9].into(), of_it)),
        most_of_all: None,
    };
    let says = [
        "50 are idle, 40 of them of 127.0.0.9.",
        "`server.keep_alive`",
    ];
    check(&full(of(50, 40), 0.0), "connections_full", "bad", &says);
    // Nobody has many of them.
    let many = full(of(50, 2), 0.0);
    check(&many, "connections_full", "bad", &["50 are idle. "]);
    let none = full(IdleConnections::default(), 0.0);
    let says = ["None is idle", "why answers take so long"];
    check(&none, "connections_full", "bad", &says);
    let silent = full(of(1, 1), 4.0);
    let says = [
        "1 is idle. ",
        "why origin api has answered nothing for 4.0 s",
    ];
    check(&silent, "connections_full", "bad", &says);
    for told in [none, silent] {
        assert!(!told.remedy.as_str().contains("keep_alive"), "{told:?}");
    }
    // One address has most of those that are not idle.
    let busy = IdleConnections {
        most_of_all: Some(([127, 0, 0, 9].into(), 45)),
        ..of(1, 1)
    };
    let says = ["1 is idle. 45 connections are from 127.0.0.9. "];
    check(&full(busy, 0.0), "connections_full", "bad", &says);
}

#[test]
fn local_ports_that_are_used_up_are_not_the_fault_of_an_origin() {
    let short = told(|it| (it.local_ports.waited, it.local_ports.in_vain) = (12, 3));
    let says = [
        "no local port for connections to origins",
        "120 requests had to wait for one and 30 requests got 503",
        "`net.ipv4.ip_local_port_range`",
        "The origin is not at fault",
    ];
    check(&short, "connections_full", "bad", &says);
    let in_vain = told(|it| it.local_ports.in_vain = 1);
    let says = ["In the last 10 s, 10 requests got 503."];
    check(&in_vain, "connections_full", "bad", &says);
}

#[test]
fn descriptors_that_are_used_up_are_not_the_fault_of_an_origin() {
    let short = told(|it| {
        it.descriptors = DescriptorSample {
            waited: 12,
            in_vain: 3,
            clients: 0,
        };
    });
    let says = [
        "no file descriptor for connections to origins",
        "120 requests had to wait for one and 30 requests got 503",
        "`LimitNOFILE`",
        "The origin is not at fault",
    ];
    check(&short, "connections_full", "bad", &says);
    let clients = told(|it| it.descriptors.clients = 2);
    let says = [
        "no file descriptor for new clients",
        "In the last 10 s, accepting a client failed 20 times. New clients wait in the kernel.",
    ];
    check(&clients, "connections_full", "bad", &says);
    // They had begun to wait before.
    let in_vain = told(|it| it.descriptors.in_vain = 1);
    let says = ["In the last 10 s, 10 requests got 503."];
    check(&in_vain, "connections_full", "bad", &says);
    for told in [clients, in_vain] {
        assert!(!told.evidence.as_str().contains(" 0 "), "{told:?}");
    }
}

#[test]
fn an_access_log_that_loses_lines_is_told_with_the_reason() {
    let lost = |error: Option<&str>| {
        told(|it| {
            it.log = LogSample {
                lost: 34,
                error: error.map(Plain::from),
            };
        })
    };
    let says = [
        "cannot be written",
        "340 lines lost",
        ": File too large",
        "`ulimit -f`",
    ];
    check(&lost(Some("File too large")), "log_lost", "warn", &says);
    let says = ["loses lines", "340 lines lost", "too slow"];
    check(&lost(None), "log_lost", "warn", &says);
}

/// A second in which so many requests of `/` have no key, and so many have one.
fn keyless(without: u64, with: u64, routes: &[&str]) -> Headline {
    told(|it| {
        it.zones[0].passed = with;
        it.zones[0].no_key = without;
        it.zones[0].keyless = (without > 0).then(|| Keyless {
            key: "$http_x_apikey".into(),
            routes: routes.iter().map(|name| Plain::from(*name)).collect(),
        });
    })
}

#[test]
fn a_limit_that_limits_nobody_is_told_and_one_that_limits_some_is_not() {
    let all = keyless(136, 0, &["/"]);
    check(
        &all,
        "no_key",
        "warn",
        &["1,360 of 1,360 requests", "`key`"],
    );
    assert_eq!(
        all.title.as_str(),
        "All requests on / (136 a second) have no $http_x_apikey: per_client limits none of them"
    );
    let most = keyless(96, 4, &["/a", "/b", "/c", "/d"]);
    assert_eq!(
        most.title.as_str(),
        "96 % of the requests on /a, /b, /c and others (96 a second) have no $http_x_apikey: per_client does not limit them"
    );
    for (without, with) in [(90, 10), (1, 0), (0, 100)] {
        let told = keyless(without, with, &["/"]);
        check(&told, "fine", "fine", &[]);
    }
}

#[test]
fn a_limit_that_limits_nobody_is_told_where_few_requests_come() {
    let few = |no_key, all| {
        told(|it| {
            it.zones[0].passed = 0;
            it.zones[0].lately = Lately {
                no_key,
                all,
                span: 40.0,
            };
            it.zones[0].keyless = Some(Keyless {
                key: "$http_x_apikey".into(),
                routes: vec!["/".into()],
            });
        })
    };
    let none = few(20, 20);
    assert_eq!(
        none.title.as_str(),
        "All requests on / (0.5 a second) have no $http_x_apikey: per_client limits none of them"
    );
    let says = ["20 of 20 requests in the last 40 s", "`key`"];
    check(&none, "no_key", "warn", &says);
    for (without, all) in [(19, 19), (90, 100)] {
        assert_ne!(few(without, all).cause.as_str(), "no_key");
    }
}

/// A second in which most requests are rejected, all of the key `all`.
fn rejecting(change: impl FnOnce(&mut ZoneSample)) -> Headline {
    told(|it| {
        let zone = &mut it.zones[0];
        zone.rejected = 30;
        zone.rejections = counts(&[("burst", 30)]);
        zone.rejected_now = vec![HeavyKey {
            key: "all".into(),
            rejections: 300,
            share: 1.0,
            ..HeavyKey::default()
        }];
        change(zone);
    })
}

fn only_key(is_constant: bool, requests: u64) -> OnlyKey {
    OnlyKey {
        key: "all".into(),
        is_constant,
        requests,
    }
}

#[test]
fn that_others_are_not_affected_is_said_only_if_there_are_others_and_they_are_not() {
    const CLAIM: &str = "others are not affected";
    let alone = rejecting(|it| it.advice = Some(advice()));
    check(&alone, "rejecting", "warn", &["One client", CLAIM]);
    assert!(
        !alone.evidence.as_str().contains("are limited"),
        "{alone:?}"
    );
    let most = rejecting(|it| it.rejected_now[0].share = 0.8);
    check(&most, "rejecting", "warn", &["One client causes most"]);
    let constant = rejecting(|it| it.only_key = Some(only_key(true, 400)));
    let says = ["All requests share one key: all (400 in", "`$remote_addr`"];
    check(&constant, "rejecting", "bad", &says);
    let one = rejecting(|it| it.only_key = Some(only_key(false, 400)));
    let says = ["All requests share one key: all", "If all is one client"];
    check(&one, "rejecting", "warn", &says);
    for told in [most, constant, one] {
        assert!(!told.remedy.as_str().contains(CLAIM), "{told:?}");
    }
    // Too few to say so.
    let few = rejecting(|it| it.only_key = Some(only_key(true, 5)));
    check(&few, "rejecting", "warn", &["One client"]);
    // A gateway that stops rejects whatever the keys.
    let stopping = rejecting(|it| {
        it.only_key = Some(only_key(true, 400));
        it.rejections = counts(&[("stopping", 30)]);
    });
    assert!(!stopping.evidence.as_str().contains("share one key"));
}

#[test]
fn a_proxy_that_is_not_trusted_is_named_also_where_nothing_is_rejected() {
    let behind = |zone: &mut ZoneSample| {
        zone.untrusted_proxy = Some("10.0.0.7".into());
        zone.only_key = Some(only_key(false, 400));
    };
    let says = [
        "per_client counts all clients behind 10.0.0.7 as one",
        "X-Forwarded-For",
        "300 of 400 requests in the last 10 s were rejected",
        "`server.trusted_proxies`",
        "If it is a client, leave it out",
    ];
    let limited = rejecting(behind);
    check(&limited, "untrusted_proxy", "bad", &says);
    assert_eq!(limited.count, 30, "requests of the last second");
    let waiting = told(|it| {
        behind(&mut it.zones[0]);
        it.zones[0].depth = 30;
    });
    check(&waiting, "untrusted_proxy", "warn", &["30 requests wait"]);
}
