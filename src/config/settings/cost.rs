use limit::Cost;

use crate::{BodyCost, HeaderCost, LearnedCost, ResponseCost};

/// What a request of a route counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostRule {
    /// Each the same.
    Fixed(Cost),
    /// What a field of the request says, if it comes from a trusted peer.
    Header(HeaderCost),
    /// One, and one more for each whole piece of the request's body.
    BodyPer(BodyCost),
    /// What a field of the answer says.
    Response(ResponseCost),
    /// How long earlier requests of the route and the method took their origin.
    Learned(LearnedCost),
}

impl CostRule {
    /// The most that a request may cost.
    pub fn max(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header(of) => of.max,
            Self::BodyPer(of) => of.max,
            Self::Response(of) => of.max,
            Self::Learned(learned) if learned.is_shadow => Cost::ONE,
            Self::Learned(learned) => learned.max,
        }
    }

    /// Whether each request counts for 1.
    pub fn is_one(&self) -> bool {
        self.max() == Cost::ONE
    }

    /// What a request counts for of which nothing is known.
    pub fn usual(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header(of) => of.default,
            Self::BodyPer(_) | Self::Learned(_) => Cost::ONE,
            Self::Response(of) => of.estimate,
        }
    }

    /// How it is learned, if it is.
    pub fn learned(&self) -> Option<&LearnedCost> {
        match self {
            Self::Learned(learned) => Some(learned),
            _ => None,
        }
    }

    /// The cost that a field names: a whole number from 1, at most `max`.
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
        let cases: [(&[u8], Option<u32>); 8] = [
            (b"1", Some(1)),
            (b" 5 ", Some(5)),
            (b"007", Some(7)),
            (b"21", Some(20)),
            (b"99999999999999999999999", Some(20)),
            (b"0", None),
            (b"", None),
            (b"1, 2", None),
        ];
        for (value, expected) in cases {
            let cost = CostRule::parse(value, max).map(Cost::get);
            assert_eq!(cost, expected, "{value:?}");
        }
    }
}
