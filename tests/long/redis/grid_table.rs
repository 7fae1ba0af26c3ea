//! Tests of the table of the gateways that share a gate, which is bounded.

use limit::Algorithm;

use crate::redis::store::grid::{claim, class};
use crate::redis::store::pace;
use crate::redis::store::server::{Server, run};

#[test]
fn the_table_of_gateways_is_bounded() {
    let server = Server::start();
    let grid = server.key();
    run(async {
        let (store, pace) = (server.store(), pace("100r/s", Algorithm::LeakyBucket, 0));
        let waits = [class(1, 1, 1)];
        let ask = async |gateway, millis| {
            let claim = claim(&grid, gateway, &pace, 1, &waits, millis);
            store.claim(&claim).await.unwrap()
        };
        for gateway in 0..1100 {
            ask(gateway, 0).await;
        }
        assert_eq!(ask(2000, 1).await.gateways.get(), 1024);
    });
}
