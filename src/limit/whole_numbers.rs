//! Serialization of durations and percentages as whole numbers, which JSON keeps exactly.
//!
//! Durations are in nanoseconds, percentages in millionths.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Percent;

/// Duration in nanoseconds.
pub mod nanos {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(crate::nanos(*span))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}

/// Spans of time: each with its start and its end, both in nanoseconds since the same instant.
pub mod nanos_spans {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::nanos;

    type Spans = Vec<(Duration, Duration)>;

    pub fn serialize<S: Serializer>(spans: &Spans, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(spans.iter().map(|(from, to)| (nanos(*from), nanos(*to))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Spans, D::Error> {
        let spans = Vec::<(u64, u64)>::deserialize(from)?.into_iter();
        let to_durations = |(from, to)| (Duration::from_nanos(from), Duration::from_nanos(to));
        Ok(spans.map(to_durations).collect())
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(self.millionths())
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u32::deserialize(from).map(Self::from_millionths)
    }
}
