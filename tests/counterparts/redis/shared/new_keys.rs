//! Tests of the bound on unknown keys in a zone that gateways share.

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Gateway, Origin, fetch};

#[test]
fn two_gateways_take_new_keys_each_on_its_own_and_share_the_bucket_of_the_others() {
    let (origin, redis) = (Origin::start(), Redis::start());
    for (algorithm, limit) in [
        ("leaky_bucket", ", burst = 3, nodelay = true"),
        ("token_bucket", ", burst = 4"),
    ] {
        let more = format!("algorithm = \"{algorithm}\"\nnew_keys = \"1r/h\"");
        let text = file(&origin, &redis.url(), "1r/h", &more, limit);
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        for gateway in &gateways {
            let own = fetch(gateway.address(), "/?key=own");
            assert_eq!(own.status, 200, "{algorithm}");
        }
        let flood = (0..12).map(|nth| {
            let target = format!("/?key=invented{nth}");
            fetch(gateways[nth % 2].address(), &target).status
        });
        let passed = flood.filter(|status| *status == 200).count();
        assert_eq!(passed, 4, "{algorithm}");
        let again = fetch(gateways[0].address(), "/?key=own");
        assert_eq!(again.status, 200, "{algorithm}: its own bucket has room");
    }
}
