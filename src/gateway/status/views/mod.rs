//! The types of a sample, and of what samples and the API have alike, as JSON.
//!
//! What the API alone says is built where it is asked for, in `admin/api`.

mod config;
mod gate;
mod headline;
mod origin;
mod places;
mod plain;
mod room;
mod route;
mod sample;
mod shared;
mod store;
mod what_if;
mod zone;

pub use config::Problem;
pub use gate::{
    BackingOff, FileAndNow, GateAsks, GateClass, GateKeySample, GateOutage, GateOverride,
    GateRefused, GateSample,
};
pub use headline::{After, EndedHeadline, Headline, Headlines, PastHeadline, Suspicion, Topic};
pub use origin::{FailureSample, Holder, OriginSample, Unanswered, Usual};
pub use places::Places;
pub use plain::Plain;
pub use room::{Room, RoomOverride, RoomSample, RoomWord};
pub use route::{Codes, Latency, RouteSample};
pub use sample::{
    CertificateSample, ChangeSample, DescriptorSample, HandshakeSample, LocalPortSample, LogSample,
    LostKeysSample, MaintenanceSample, Sample,
};
pub use shared::{Shared, SharedAnswers, SharedSample};
pub use store::{StoreRefuses, StoreSample};
pub use what_if::{ChangedKey, RateAdvice, Replayed, WhatIf};
pub use zone::{
    FullKey, HeavyKey, KeySample, Keyless, Lately, OnlyKey, Override, Totals, ZoneSample,
};
