//! Cost of a request, as a route configures it.

use limit::Cost;

use crate::{BodyCost, HeaderCost, LearnedCost, ResponseCost};

/// Rule for the cost of a route's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostRule {
    /// The same cost for each request.
    Fixed(Cost),
    /// Cost from a request field, if a trusted peer sent it.
    Header(HeaderCost),
    /// Cost by the size of the request's body: 1, plus 1 per whole piece.
    BodyPer(BodyCost),
    /// Cost from a response field.
    Response(ResponseCost),
    /// Cost learned from the time at the origin of earlier requests with this route and method.
    Learned(LearnedCost),
}

impl CostRule {
    /// Returns the maximum cost of a request.
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

    /// Returns whether each request costs 1.
    pub fn is_one(&self) -> bool {
        self.max() == Cost::ONE
    }

    /// Returns the cost of a request about which nothing is known.
    pub fn usual(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header(of) => of.default,
            Self::BodyPer(_) | Self::Learned(_) => Cost::ONE,
            Self::Response(of) => of.estimate,
        }
    }

    /// Returns the parameters of a learned cost, if the cost is learned.
    pub fn learned(&self) -> Option<&LearnedCost> {
        match self {
            Self::Learned(learned) => Some(learned),
            _ => None,
        }
    }

    /// Reads the cost in a header field: a whole number from 1, capped at `max`.
    pub fn parse(value: &[u8], max: Cost) -> Option<Cost> {
        let value = value.trim_ascii();
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return None;
        }
        // A number with more digits than fit is capped.
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
