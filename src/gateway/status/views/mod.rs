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

pub use gate::PermitsStatus;
pub use gate::{
    BackingOff, ConfiguredAndEffective, GateClass, GateKeySample, GateOutage, GateOverride,
    GateRefused, GateSample, RefusedOperation,
};
pub use headline::{After, EndedHeadline, Headline, Headlines, PastHeadline, Suspicion, Topic};
pub use origin::{FailureSample, Holder, OriginSample, Unanswered, Usual};
pub use origin::{Shared, SharedAnswers, SharedSample};
pub use plain::Plain;
pub use room::{Room, RoomOverride, RoomSample, RoomWord};
pub use sample::Problem;
pub use sample::{
    CertificateSample, ChangeSample, DescriptorSample, HandshakeSample, LocalPortSample, LogSample,
    LostKeysSample, MaintenanceSample, Sample,
};
pub use sample::{Codes, Latency, RouteSample};
pub use sample::{StoreRefuses, StoreSample};
pub use zone::{ChangedKey, RateAdvice, Replayed, WhatIf};
pub use zone::{
    FullKey, HeavyKey, KeySample, Keyless, OnlyKey, Override, RecentRequests, Totals, ZoneSample,
};
