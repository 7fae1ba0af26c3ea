//! What the operator sees of a store that does not exist.

use serde_json::Value;

use crate::support::operator::json;
use crate::support::{Gateway, Origin, one_zone};

#[test]
fn a_gateway_without_shared_zones_has_no_store() {
    let gateway = Gateway::start(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    assert_eq!(json(&gateway, "/api/store")["store"], Value::Null);
}
