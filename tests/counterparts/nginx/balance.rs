//! Compares the choice of a server by nginx and by drip.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::programs::nginx::Nginx;
use crate::support::{Gateway, Origin, fetch, free_address};

/// Sends requests one after the other. Returns the server that each reached.
fn sequence(to: SocketAddr, servers: &[Origin], requests: usize) -> Vec<usize> {
    let counts = || servers.iter().map(|it| it.arrivals().len());
    let next = |_| {
        let before: Vec<usize> = counts().collect();
        assert_eq!(fetch(to, "/").status, 200);
        let mut more = counts().zip(before).map(|(now, before)| now > before);
        more.position(|more| more).expect("an arrival")
    };
    (0..requests).map(next).collect()
}

/// Starts nginx with an `upstream` of these servers.
fn nginx(servers: &[Origin], weights: &[u32], directives: &str) -> (Nginx, SocketAddr) {
    let address = free_address();
    let mut upstream = String::new();
    for (server, weight) in servers.iter().zip(weights) {
        writeln!(upstream, "server {} weight={weight};", server.address).expect("a string");
    }
    let http = format!(
        "upstream app {{ {directives} {upstream} }}
         server {{ listen {address}; location / {{ proxy_pass http://app; }} }}"
    );
    (Nginx::start(&servers[0], &http, &[]), address)
}

fn drip(servers: &[Origin], weights: &[u32]) -> Gateway {
    let server = |(server, weight): (&Origin, &u32)| {
        format!(
            "{{ url = \"http://{}\", weight = {weight} }}",
            server.address
        )
    };
    let servers: Vec<String> = servers.iter().zip(weights).map(server).collect();
    Gateway::start(&format!(
        "[origins.app]\nservers = [{}]\n[[routes]]\npath = \"/\"\norigin = \"app\"\n",
        servers.join(", ")
    ))
}

#[test]
fn sequential_requests_are_spread_by_weight_as_by_nginx() {
    let servers = [Origin::start(), Origin::start(), Origin::start()];
    for weights in [[1, 1, 1], [5, 1, 1], [3, 2, 1], [10, 7, 4]] {
        let gateway = drip(&servers, &weights);
        for directives in ["", "least_conn;"] {
            let (_nginx, address) = nginx(&servers, &weights, directives);
            let requests = 3 * weights.iter().sum::<u32>() as usize;
            let theirs = sequence(address, &servers, requests);
            let ours = sequence(gateway.address(), &servers, requests);
            assert_eq!(ours, theirs, "{weights:?} {directives}");
        }
    }
}
