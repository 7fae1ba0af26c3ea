//! Tests of limits that other numbers do not show: full connections, exhausted descriptors and
//! ports, requests without a key, and requests that share one key.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text: `…` stands
//! for any text between two parts. `not` checks that the text has none of some parts. `after`
//! returns the headline itself.

use super::*;
use crate::observe::connections::{ConnectionCounts, IdleConnections};
use crate::origin::report::sample::Unanswered;
use crate::status::sample::{DescriptorSample, LogSample};
use crate::zone::report::sample::{Keyless, OnlyKey, RecentRequests};

/// All 50 connections are in use.
fn full(now: &mut Sample) -> &mut ConnectionCounts {
    now.connections = ConnectionCounts {
        open: 50,
        max: 50,
        is_full: true,
        ..ConnectionCounts::default()
    };
    &mut now.connections
}

#[test]
fn full_connections_come_first_with_how_many_wait() {
    let dead = |now: &mut Sample, waiting| {
        now.origins[0].healthy = 0;
        now.zones[0].rejected = 10;
        full(now).waiting = waiting;
    };
    reported("bad connections_full", |now| dead(now, Some(551)))
        .says("50 of 50 connections are in use; new clients wait in the kernel (551 now)")
        .says("`server.max_connections`");
    reported("bad connections_full", |now| dead(now, None)).says("wait in the kernel\n");
    let mut second = fine();
    dead(&mut second, Some(551));
    // How many requests the waiting clients would send is unknown.
    assert_eq!(after(&second).finding.count, 0);
    // The limit of descriptors is lower than that of connections.
    reported("bad connections_full", |now| {
        full(now).few_descriptors = true;
    })
    .says("The limit of file descriptors allows only 50 client connections;")
    .says("Raise the limit of file descriptors (`LimitNOFILE`")
    .not(&["max_connections"]);
    // All connections are in use, and no client waits yet. `is_full` says that clients wait.
    reported("fine fine", |now| full(now).is_full = false);
}

#[test]
fn full_connections_are_reported_with_the_idle_ones() {
    let full = |idle, silence| {
        reported("bad connections_full", |now| {
            full(now).idle = Some(idle);
            now.origins[0].unanswered = Some(Unanswered {
                silence,
                ..Unanswered::default()
            });
        })
    };
    // Number of idle connections, and those of the client that has the most.
    let idle = |count, of_client| IdleConnections {
        count,
        most: Some(([127, 0, 0, 9].into(), of_client)),
        most_of_all: None,
    };
    full(idle(50, 40), 0.0).says("50 are idle, 40 of them of 127.0.0.9. … `server.keep_alive`");
    // No client has many of the idle connections.
    full(idle(50, 2), 0.0).says("50 are idle. ");
    full(IdleConnections::default(), 0.0)
        .says("None is idle … why answers take so long")
        .not(&["keep_alive"]);
    full(idle(1, 1), 4.0)
        .says("1 is idle.  … why origin api has answered nothing for 4.0 s")
        .not(&["keep_alive"]);
    // One address has most of the connections that are not idle.
    let busy = IdleConnections {
        most_of_all: Some(([127, 0, 0, 9].into(), 45)),
        ..idle(1, 1)
    };
    full(busy, 0.0).says("1 is idle. 45 connections are from 127.0.0.9. ");
}

#[test]
fn exhausted_ports_and_descriptors_are_not_blamed_on_an_origin() {
    reported("bad connections_full", |now| {
        (now.local_ports.waited, now.local_ports.in_vain) = (12, 3);
    })
    .says("no local port for connections to origins")
    .says("120 requests had to wait for one and 30 requests got 503")
    .says("The origin is not at fault")
    .says("`net.ipv4.ip_local_port_range`");
    reported("bad connections_full", |now| now.local_ports.in_vain = 1)
        .says("In the last 10 s, 10 requests got 503.");
    reported("bad connections_full", |now| {
        now.descriptors = DescriptorSample {
            waited: 12,
            in_vain: 3,
            clients: 0,
        };
    })
    .says("no file descriptor for connections to origins")
    .says("120 requests had to wait for one and 30 requests got 503")
    .says("The origin is not at fault")
    .says("`LimitNOFILE`");
    reported("bad connections_full", |now| now.descriptors.clients = 2)
        .says("no file descriptor for new clients … accepting a client failed 20 times.")
        .says("New clients wait in the kernel.")
        .not(&[" 0 "]);
    // The requests had begun to wait in an earlier second.
    reported("bad connections_full", |now| now.descriptors.in_vain = 1)
        .says("In the last 10 s, 10 requests got 503.")
        .not(&[" 0 "]);
}

#[test]
fn an_access_log_that_loses_lines_is_reported_with_the_cause() {
    let lost = |error: Option<&str>| {
        let error = error.map(Plain::from);
        reported("warn log_lost", |now| {
            now.log = LogSample { lost: 34, error }
        })
    };
    lost(Some("File too large"))
        .says("cannot be written … 340 lines lost … : File too large … `ulimit -f`");
    lost(None).says("loses lines … 340 lines lost … too slow");
}

/// Sets the numbers of requests of `routes` without and with a key.
fn keyless(now: &mut Sample, without: u64, with: u64, routes: &[&str]) {
    now.zones[0].passed = with;
    now.zones[0].no_key = without;
    now.zones[0].keyless = (without > 0).then(|| Keyless {
        key: "$http_x_apikey".into(),
        routes: routes.iter().map(|name| Plain::from(*name)).collect(),
    });
}

#[test]
fn a_limit_without_keys_is_reported_only_if_it_limits_almost_nobody() {
    reported("warn no_key per_client", |now| keyless(now, 136, 0, &["/"]))
        .says("All requests on / (136 a second) have no $http_x_apikey:")
        .says("per_client limits none of them … 1,360 of 1,360 requests … `key`");
    reported("warn no_key per_client", |now| {
        keyless(now, 96, 4, &["/a", "/b", "/c", "/d"]);
    })
    .says("96 % of the requests on /a, /b, /c and others (96 a second) have no")
    .says("$http_x_apikey: per_client does not limit them");
    for (without, with) in [(90, 10), (1, 0), (0, 100)] {
        reported("fine fine", |now| keyless(now, without, with, &["/"]));
    }
}

#[test]
fn a_limit_without_keys_is_reported_also_with_few_requests() {
    let few = |label, no_key, all| {
        reported(label, |now| {
            keyless(now, 1, 0, &["/"]);
            now.zones[0].no_key = 0;
            now.zones[0].lately = RecentRequests {
                no_key,
                all,
                span: 40.0,
            };
        })
    };
    few("warn no_key per_client", 20, 20)
        .says("All requests on / (0.5 a second) have no $http_x_apikey:")
        .says("20 of 20 requests in the last 40 s … `key`");
    for (without, all) in [(19, 19), (90, 100)] {
        few("fine fine", without, all);
    }
}

/// Most requests are rejected, all of the key `all`.
fn rejecting(now: &mut Sample) -> &mut ZoneSample {
    let zone = &mut now.zones[0];
    zone.rejected = 30;
    zone.rejections = counts(&[("burst", 30)]);
    zone.rejected_now = heavy("all", 1.0);
    zone.rejected_now[0].rejections = 300;
    zone
}

fn only_key(is_constant: bool, requests: u64) -> OnlyKey {
    OnlyKey {
        key: "all".into(),
        is_constant,
        requests,
    }
}

#[test]
fn unaffected_keys_are_mentioned_only_if_there_are_any() {
    const CLAIM: &str = "others are not affected";
    const WARN: &str = "warn rejecting per_client";
    reported(WARN, |now| rejecting(now).advice = Some(advice()))
        .says("One client … others are not affected")
        .not(&["are limited"]);
    reported(WARN, |now| rejecting(now).rejected_now[0].share = 0.8)
        .says("One client causes most")
        .not(&[CLAIM]);
    reported("bad rejecting per_client", |now| {
        rejecting(now).only_key = Some(only_key(true, 400));
    })
    .says("All requests share one key: all (400 in … `$remote_addr`")
    .not(&[CLAIM]);
    reported(WARN, |now| {
        rejecting(now).only_key = Some(only_key(false, 400));
    })
    .says("All requests share one key: all … If all is one client")
    .not(&[CLAIM]);
    // Too few requests to say so.
    reported(WARN, |now| {
        rejecting(now).only_key = Some(only_key(true, 5));
    })
    .says("One client");
    // A gateway that stops rejects requests of any key.
    reported(WARN, |now| {
        let zone = rejecting(now);
        zone.only_key = Some(only_key(true, 400));
        zone.rejections = counts(&[("stopping", 30)]);
    })
    .not(&["share one key"]);
}

#[test]
fn a_proxy_that_is_not_trusted_is_named_also_where_nothing_is_rejected() {
    let behind = |zone: &mut ZoneSample| {
        zone.untrusted_proxy = Some("10.0.0.7".into());
        zone.only_key = Some(only_key(false, 400));
    };
    let mut second = fine();
    behind(rejecting(&mut second));
    // Requests of the last second.
    assert_eq!(after(&second).finding.count, 30);
    reported("bad untrusted_proxy per_client", |now| *now = second)
        .says("per_client counts all clients behind 10.0.0.7 as one … X-Forwarded-For")
        .says("300 of 400 requests in the last 10 s were rejected")
        .says("`server.trusted_proxies` … If it is a client, leave it out");
    reported("warn untrusted_proxy per_client", |now| {
        behind(&mut now.zones[0]);
        now.zones[0].depth = 30;
    })
    .says("30 requests wait");
}
