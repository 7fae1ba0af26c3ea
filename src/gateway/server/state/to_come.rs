use std::collections::HashMap;

use futures_util::future::join_all;
use limit::{Onward, Ticket, ToCome};

use crate::gate::OriginGate;
use crate::http::gateway::Gateway;
use crate::zone::TurnToCome;

/// Requests that wait in zones, and will join a gate with a turn.
#[derive(Debug, Default)]
pub(super) struct GateArrivals(HashMap<Onward, Vec<ToCome>>);

impl GateArrivals {
    /// Asks all zones.
    pub(super) async fn of(gateway: &Gateway) -> Self {
        let zones = gateway.zones().iter().map(|zone| zone.turns_to_come());
        Self::from_turns(join_all(zones).await.into_iter().flatten())
    }

    /// A request with turns in several zones comes with the last one.
    fn from_turns(turns: impl Iterator<Item = TurnToCome>) -> Self {
        let mut requests: HashMap<Ticket, TurnToCome> = HashMap::new();
        for turn in turns {
            let known = requests.entry(turn.ticket).or_insert(turn);
            if turn.to_come.due > known.to_come.due {
                *known = turn;
            }
        }
        let mut arrivals = Self::default();
        for TurnToCome {
            onward, to_come, ..
        } in requests.into_values()
        {
            arrivals.0.entry(onward).or_default().push(to_come);
        }
        arrivals
    }

    /// Those that will come to this gate.
    pub(super) fn at(&self, gate: &OriginGate) -> &[ToCome] {
        let arrivals = gate.onward().and_then(|onward| self.0.get(&onward));
        arrivals.map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;
    use limit::{Cost, Moment};

    #[test]
    fn a_request_comes_with_the_last_of_its_turns_to_its_own_gate() {
        let onward = |number| Onward(NonZeroU16::new(number).unwrap());
        let turn = |ticket, gate, due| TurnToCome {
            ticket: Ticket(ticket),
            onward: onward(gate),
            to_come: ToCome {
                due: Moment::from_nanos(due),
                cost: Cost::ONE,
            },
        };
        let turns = [
            turn(1, 1, 5),
            turn(2, 1, 7),
            turn(1, 1, 9),
            turn(3, 2, 1),
            turn(1, 1, 8),
        ];
        let arrivals = GateArrivals::from_turns(turns.into_iter());
        let dues = |gate| {
            let mut dues: Vec<_> = arrivals.0[&onward(gate)]
                .iter()
                .map(|it| it.due.as_nanos())
                .collect();
            dues.sort_unstable();
            dues
        };
        assert_eq!((dues(1), dues(2)), (vec![7, 9], vec![1]));
    }
}
