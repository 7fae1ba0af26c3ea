//! What the admin port says of the gateway, as JSON: written by the API, read by `drip top`.
//!
//! A reader takes what an older gateway does not send as empty or zero.

mod advice;
mod config;
mod gate;
mod headline;
mod origin;
mod overrides;
mod plain;
mod route;
mod sample;
mod store;
mod what_if;
mod zone;

pub use advice::{RateAdvice, TriedRate};
pub use config::{Broken, Change, Config, Problem};
pub use gate::{
    BackingOff, FileAndNow, Gate, GateClass, GateKey, GateKeySample, GateOutage, GateRefused,
    GateSample, Sharing,
};
pub use headline::{EndedHeadline, Headline, Headlines, PastHeadline};
pub use origin::{Check, Event, Origin, Origins, Out, Server};
pub use overrides::{KeyOverride, Overrides};
pub use plain::Plain;
pub use route::{Codes, Latency, Route, Routes};
pub use sample::{
    ConnectionsSample, DescriptorSample, HeavyKey, History, KeySample, Keyless, LogSample, OnlyKey,
    OriginSample, RouteSample, Sample, StoreRefuses, StoreSample, ZoneSample,
};
pub use store::{SharedStore, Store, StoreZone};
pub use what_if::{ChangedKey, Happened, Replayed, WhatIf};
pub use zone::{Keys, Limit, Override, Totals, Zone, ZonePlan, Zones};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_is_who_left_and_who_waits_more() {
        let sample = ZoneSample {
            passed: 1,
            delayed: 9,
            rejected: 4,
            cancelled: 1,
            depth: 20,
            ..ZoneSample::default()
        };
        assert_eq!((sample.out(), sample.came(12)), (10, 23));
        assert_eq!(sample.came(100), 0);
    }

    #[test]
    fn what_is_not_known_is_passed_over_and_what_is_missing_is_zero() {
        let text = r#"{"name": "a", "new": [1], "limits": [{"route": "/", "nodelay": true, "delay": null}]}"#;
        let zone: Zone = serde_json::from_str(text).unwrap();
        assert_eq!(zone.limits[0].delay, None);
        assert_eq!(zone.totals.passed, 0);
    }
}
