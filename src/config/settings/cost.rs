use std::num::NonZeroU64;
use std::time::Duration;

use limit::Cost;

/// What a request of a route counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostRule {
    /// Each the same.
    Fixed(Cost),
    /// What a field of the request says, if it comes from a trusted peer.
    Header {
        /// The field's name, in lowercase.
        name: String,
        /// What counts without the field, if it is no whole number from 1, or if the peer is not
        /// trusted.
        default: Cost,
        /// What counts for any higher number.
        max: Cost,
    },
    /// One, and one more for each whole piece of the request's body.
    ///
    /// A body whose length is not known beforehand counts as the longest.
    BodyPer {
        /// The size of a piece, in bytes.
        size: NonZeroU64,
        /// What counts for any longer body.
        max: Cost,
    },
    /// What a field of the answer says.
    ResponseHeader {
        /// The field's name, in lowercase. It is removed from the answer.
        name: String,
        /// What counts until the answer is there, and for good if it does not tell.
        estimate: Cost,
        /// What counts for any higher number.
        max: Cost,
    },
    /// How long earlier requests of the route and the method took their origin.
    Learned(LearnedCost),
}

/// A cost that is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedCost {
    /// How long a request of cost 1 takes its origin, above zero.
    pub unit: Duration,
    /// What counts for any longer time.
    pub max: Cost,
    /// Whether it only shows what it would charge, and charges 1.
    pub is_shadow: bool,
}

impl CostRule {
    /// The most that a request may cost.
    #[must_use]
    pub fn max(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header { max, .. }
            | Self::BodyPer { max, .. }
            | Self::ResponseHeader { max, .. } => *max,
            Self::Learned(learned) if learned.is_shadow => Cost::ONE,
            Self::Learned(learned) => learned.max,
        }
    }

    /// Whether each request counts for 1.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.max() == Cost::ONE
    }

    /// What a request counts for of which nothing is known.
    #[must_use]
    pub fn usual(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header { default, .. } => *default,
            Self::BodyPer { .. } | Self::Learned(_) => Cost::ONE,
            Self::ResponseHeader { estimate, .. } => *estimate,
        }
    }

    /// How it is learned, if it is.
    #[must_use]
    pub fn learned(&self) -> Option<&LearnedCost> {
        match self {
            Self::Learned(learned) => Some(learned),
            Self::Fixed(_)
            | Self::Header { .. }
            | Self::BodyPer { .. }
            | Self::ResponseHeader { .. } => None,
        }
    }

    /// The cost that a field names: a whole number from 1, at most `max`.
    #[must_use]
    pub fn parse(value: &[u8], max: Cost) -> Option<Cost> {
        let value = value.trim_ascii();
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return None;
        }
        // Any number of digits is a number.
        let number = str::from_utf8(value).ok()?.parse().unwrap_or(u32::MAX);
        (number > 0).then(|| Cost::new(number).unwrap_or(max).min(max))
    }
}

impl Default for CostRule {
    fn default() -> Self {
        Self::Fixed(Cost::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_names_a_whole_number_from_one() {
        let max = Cost::new(20).unwrap();
        let cases: [(&[u8], Option<u32>); 12] = [
            (b"1", Some(1)),
            (b" 5 ", Some(5)),
            (b"007", Some(7)),
            (b"20", Some(20)),
            (b"21", Some(20)),
            (b"65", Some(20)),
            (b"99999999999999999999999", Some(20)),
            (b"0", None),
            (b"-1", None),
            (b"1.5", None),
            (b"", None),
            (b"1, 2", None),
        ];
        for (value, expected) in cases {
            let cost = CostRule::parse(value, max).map(Cost::get);
            assert_eq!(cost, expected, "{value:?}");
        }
    }
}
