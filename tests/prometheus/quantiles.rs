//! What the dashboards show of waits whose bounds are known.

use crate::prometheus::board::{self, Board};
use crate::prometheus::panels::{ask, values};
use crate::prometheus::server::Prometheus;
use crate::support::{Client, Gateway, Origin};

/// The longest wait is 2.8 s. The next edge above it is 3 s, and a late scrape or departure changes nothing.
#[test]
fn no_wait_looks_longer_than_the_edge_above_the_longest() {
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$host\"\nrate = \"1r/700ms\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 4 }}]\n",
        origin.address
    ));
    let mut prometheus = Prometheus::start(&gateway);
    let mut waiting: Vec<_> = (0..5)
        .map(|_| Client::ask(gateway.address(), "/"))
        .collect();
    for client in &mut waiting {
        assert_eq!(client.answer().status, 200);
    }
    prometheus.wait("Prometheus has seen all waits", |prometheus| {
        prometheus.value("drip_zone_queue_wait_seconds_count") >= Some(4.0)
    });
    let boards = board::all();
    let queries = boards.iter().flat_map(Board::queries);
    let mut seen = 0;
    for query in queries.filter(|query| query.place.contains("\"Wait p99\"")) {
        let series = ask(&prometheus, &query, "z").expect("an answer");
        let longest = series.iter().flat_map(values).fold(0.0, f64::max);
        assert!(
            (2.5..=3.0).contains(&longest),
            "{}: {longest} s",
            query.place
        );
        seen += 1;
    }
    assert_eq!(seen, 2, "one in each dashboard");
}
