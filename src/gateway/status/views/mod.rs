//! What the admin port says of the gateway, as JSON.
//!
//! Each file has the types of one noun: what it is now, and what it did in the last second.
//!
//! A reader of samples, and `drip find`, take what an older gateway does not send as empty or zero.

mod config;
mod find;
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

pub use config::{Broken, Change, Config, Problem};
pub use find::{Find, FindFigure, FindLevel, FindOutcome, FindStep, Finds};
pub use gate::{
    BackingOff, FileAndNow, Gate, GateAsks, GateClass, GateKey, GateKeySample, GateOutage,
    GateOverride, GateRefused, GateSample, Sharing,
};
pub use headline::{After, EndedHeadline, Headline, Headlines, PastHeadline, Suspicion, Topic};
pub use origin::{
    Check, Event, FailureSample, Holder, Origin, OriginSample, Origins, Out, Server, Unanswered,
    Usual,
};
pub use places::Places;
pub use plain::Plain;
pub use room::{Room, RoomOverride, RoomSample, RoomWord};
pub use route::{Codes, Latency, Maintenance, MethodCost, Route, RouteCost, RouteSample, Routes};
pub use sample::{
    CertificateSample, ChangeSample, DescriptorSample, HandshakeSample, LocalPortSample, LogSample,
    LostKeysSample, MaintenanceSample, Sample,
};
pub use shared::{Shared, SharedAnswers, SharedSample};
pub use store::{SharedStore, Store, StoreRefuses, StoreSample, StoreZone};
pub use what_if::{ChangedKey, Happened, RateAdvice, Replayed, WhatIf};
pub use zone::{
    FullKey, HeavyKey, KeyOverride, KeySample, Keyless, Keys, Lately, Limit, OnlyKey, Override,
    Overrides, Totals, Zone, ZonePlan, ZoneSample, Zones,
};
