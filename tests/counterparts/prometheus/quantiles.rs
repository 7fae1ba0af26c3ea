//! Tests of the dashboards' quantiles of waits with known bounds.

use crate::prometheus::board::{self, Board, Query};
use crate::prometheus::panels::{ask, values};
use crate::prometheus::server::Prometheus;
use crate::support::{Gateway, Origin};

/// Starts a gateway where one request departs and four wait, 2.8 s at most.
///
/// Returns when Prometheus has seen all waits. The next bucket edge above the longest is 3 s, so a
/// late scrape or departure changes nothing.
fn after_waits(origin: &Origin, file: &str, waits: &str) -> (Gateway, Prometheus) {
    let servers = format!("[origins.app]\nservers = [\"http://{}\"]\n", origin.address);
    let gateway = Gateway::start(&(servers + file));
    let mut prometheus = Prometheus::start(&gateway);
    let mut waiting: Vec<_> = (0..5).map(|_| gateway.ask("/")).collect();
    for client in &mut waiting {
        assert_eq!(client.answer().status, 200);
    }
    prometheus.wait("Prometheus has seen all waits", |prometheus| {
        prometheus.value(waits) >= Some(4.0)
    });
    (gateway, prometheus)
}

/// Checks that the tiles show the longest wait, and none above the next bucket edge.
fn check_longest(prometheus: &Prometheus, boards: &[Board]) {
    let queries = boards.iter().flat_map(Board::queries);
    let tiles = queries.filter(|query| query.source.contains("\"Wait p99\""));
    let tiles: Vec<Query> = tiles.collect();
    assert_eq!(tiles.len(), boards.len(), "one in each dashboard");
    for query in &tiles {
        let series = ask(prometheus, query, "z").expect("an answer");
        let longest = series.iter().flat_map(values).fold(0.0, f64::max);
        let is_right = (2.5..=3.0).contains(&longest);
        assert!(is_right, "{}: {longest} s", query.source);
    }
}

#[test]
fn no_wait_looks_longer_than_the_edge_above_the_longest() {
    let origin = Origin::start();
    let (_gateway, prometheus) = after_waits(
        &origin,
        "[zones.z]\nkey = \"$host\"\nrate = \"1r/700ms\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 4 }]\n",
        "drip_zone_queue_wait_seconds_count",
    );
    check_longest(&prometheus, &board::all());
}

/// The wait in the overview includes the wait at a gate.
///
/// No request waits in a zone here.
#[test]
fn the_overviews_wait_includes_the_wait_at_a_gate() {
    let origin = Origin::start();
    let (_gateway, prometheus) = after_waits(
        &origin,
        "rate = \"1r/700ms\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n",
        "drip_origin_queue_wait_seconds_count",
    );
    let mut boards = board::all();
    boards.retain(|board| board.file == "overview.json");
    check_longest(&prometheus, &boards);
}
