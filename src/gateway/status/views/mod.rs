//! The types of a sample, and of what samples and the API have alike, as JSON.
//!
//! What the API alone says is built where it is asked for, in `admin/api`.

mod gate;
mod headline;
mod origin;
mod plain;
mod room;
mod sample;
mod zone;

pub use gate::Places;
pub use gate::{
    BackingOff, FileAndNow, GateAsks, GateClass, GateKeySample, GateOutage, GateOverride,
    GateRefused, GateSample,
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
    FullKey, HeavyKey, KeySample, Keyless, Lately, OnlyKey, Override, Totals, ZoneSample,
};
