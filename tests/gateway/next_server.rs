//! Tests that a request tries each server that it cannot reach, and the backups last.
//!
//! nginx does so with `proxy_next_upstream error timeout`.

use std::net::SocketAddr;

use crate::support::{self, Answer, Exchange, Gateway, Origin, exchange, free_address};

/// Returns a file with these servers and these backups.
fn file(servers: &[SocketAddr], backups: &[SocketAddr], more: &str) -> String {
    let server = |to: &SocketAddr| format!("{{ url = \"http://{to}\" }}");
    let backup = |to: &SocketAddr| format!("{{ url = \"http://{to}\", backup = true }}");
    let servers = servers.iter().map(server);
    let all: Vec<String> = servers.chain(backups.iter().map(backup)).collect();
    support::servers(&["ALL"], more).replace("\"ALL\"", &all.join(", "))
}

/// Setting with which failures take no server out.
const ALWAYS_IN: &str = "max_fails = 1000";

fn post(gateway: &Gateway) -> Answer {
    exchange(
        gateway.address(),
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
    )
}

/// Returns how many requests could not be sent to a server.
fn unreachable(gateway: &Gateway, server: SocketAddr) -> i64 {
    let server = format!("http://{server}");
    let labels = [("server", &*server), ("outcome", "unreachable")];
    gateway.count("drip_origin_requests_total", &labels)
}

#[test]
fn the_first_request_reaches_the_backup_where_all_other_servers_refuse() {
    for primaries in 1..=4 {
        for more in [ALWAYS_IN, "max_fails = 1000\nhold = \"10s\""] {
            let missing: Vec<_> = (0..primaries).map(|_| free_address()).collect();
            let backup = Origin::echo();
            let gateway = Gateway::start(&file(&missing, &[backup.address], more));
            assert_eq!(gateway.fetch("/").status, 200, "{primaries}");
            // Nothing was sent, so the request is retried with its body, whatever its method.
            let answer = post(&gateway);
            assert_eq!((answer.status, &*answer.text()), (200, "body"));
            assert_eq!(backup.arrivals().len(), 2);
            for server in missing {
                assert_eq!(unreachable(&gateway, server), 2, "{primaries} {more}");
            }
        }
    }
}

#[test]
fn each_server_is_tried_once_where_the_file_says_nothing_but_their_urls() {
    let missing = [(); 4].map(|()| free_address());
    let last = Origin::echo();
    let servers = [missing[0], missing[1], missing[2], missing[3], last.address];
    let gateway = Gateway::start(&file(&servers, &[], ALWAYS_IN));
    assert_eq!(post(&gateway).status, 200);
    for server in missing {
        assert_eq!(unreachable(&gateway, server), 1);
    }
    let gateway = Gateway::start(&file(&missing, &[], ALWAYS_IN));
    assert_eq!(post(&gateway).status, 502);
    for server in missing {
        assert_eq!(unreachable(&gateway, server), 1);
    }
}

/// A request that a server has received goes to no other server, which might repeat its effect.
#[test]
fn what_a_server_has_taken_goes_to_no_other_one() {
    let taking = Origin::answering(|exchange: &mut Exchange| {
        exchange.body()?;
        Exchange::close()
    });
    let backup = Origin::echo();
    let gateway = Gateway::start(&file(&[taking.address], &[backup.address], ALWAYS_IN));
    assert_eq!(post(&gateway).status, 502);
    assert_eq!((taking.arrivals().len(), backup.arrivals().len()), (1, 0));
}
