//! Tests of a store that is out or refuses.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::gate::report::sample::{GateRefused, RefusedOperation};
use crate::store::report::sample::{StoreRefuses, StoreSample};

#[test]
fn trouble_with_the_store_has_its_headlines() {
    reported("bad store_out", |now| {
        now.store = Some(StoreSample {
            up: false,
            out_for: Some(12.0),
            reason: Some("connection refused".into()),
            meanwhile: Some("zones follow their on_store_failure".into()),
            operations: counts(&[("skipped", 10), ("ok", 1)]),
            ..StoreSample::default()
        });
    })
    .says("out for 12 s … connection refused … 100 skipped")
    .says("Meanwhile, zones follow their on_store_failure.")
    .not(&["raise"]);
    reported("bad store_refuses per_client", |now| {
        now.zones[0].rejected = 10;
        now.store = Some(StoreSample {
            up: true,
            operations: counts(&[("refused", 10)]),
            refuses: Some(StoreRefuses {
                zones: vec!["per_client".into()],
                reason: "the store does not allow the command: NOPERM".into(),
                remedy: "allow EVAL".into(),
            }),
            ..StoreSample::default()
        });
    })
    .says("Redis refuses all requests of per_client")
    .says("100 operations refused in the last 10 s: the store does not allow the command: NOPERM.")
    .says("Allow EVAL.");
    reported("bad store_refuses api", |now| {
        now.store = Some(StoreSample {
            up: true,
            ..StoreSample::default()
        });
        now.origins[0].gate = Some(GateSample {
            rejected: counts(&[("max_queue", 5)]),
            refused: Some(GateRefused {
                operation: RefusedOperation::Slots,
                part: 0.1,
                reason: "the store refused: WRONGTYPE".into(),
                remedy: "delete the key".into(),
            }),
            ..GateSample::default()
        });
    })
    .says("The gate of api goes on alone with 1/10 of its rate: Redis refused")
    .says("the store refused: WRONGTYPE. … Delete the key.");
}
