//! JSON types of samples, and of the parts that samples and the API share.
//!
//! Bodies of the API alone are built in `admin/api`.

mod gate;
mod headline;
mod origin;
mod plain;
mod room;
mod sample;
mod zone;

pub use gate::{
    BackingOff, ConfiguredAndEffective, GateClass, GateKeySample, GateOutage, GateOverride,
    GateRefused, GateSample, PermitsStatus, RefusedOperation,
};
pub use headline::{After, EndedHeadline, Headline, Headlines, PastHeadline, Suspicion, Topic};
pub use origin::{
    FailureSample, Holder, OriginSample, Shared, SharedAnswers, SharedSample, Unanswered, Usual,
};
pub use plain::Plain;
pub use room::{Room, RoomOverride, RoomSample, RoomWord};
pub use sample::{
    CertificateSample, ChangeSample, Codes, DescriptorSample, HandshakeSample, Latency,
    LocalPortSample, LogSample, LostKeysSample, MaintenanceSample, Problem, RouteSample, Sample,
    StoreRefuses, StoreSample,
};
pub use zone::{
    ChangedKey, FullKey, HeavyKey, KeySample, Keyless, OnlyKey, Override, RateAdvice,
    RecentRequests, Replayed, Totals, WhatIf, ZoneSample,
};
