use std::collections::HashMap;
use std::time::Duration;

use limit::Moment;

/// Until when places of each origin are withheld, by what this gateway has seen of them.
#[derive(Default)]
pub(super) struct Withheld {
    before: HashMap<String, Since>,
    now: HashMap<String, Since>,
}

/// How many places are withheld, and since when there are no fewer.
#[derive(Clone, Copy)]
struct Since {
    places: u64,
    at: Moment,
}

impl Withheld {
    /// Begins a new second.
    pub(super) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// How long these places of an origin are withheld still, at most; `None`: for longer than the
    /// file of this gateway says, or none is.
    pub(super) fn left(
        &mut self,
        origin: &str,
        places: u64,
        orphan: Duration,
        now: Moment,
    ) -> Option<Duration> {
        if places == 0 {
            return None;
        }
        let known = self.before.get(origin).copied();
        let at = match known.filter(|known| known.places >= places) {
            Some(known) => known.at,
            None => now,
        };
        self.now.insert(origin.to_owned(), Since { places, at });
        let until = at + orphan;
        (until > now).then(|| until.since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_that_was_withheld_is_free_last() {
        const ORPHAN: Duration = Duration::from_secs(10);
        let mut withheld = Withheld::default();
        let places = [0, 3, 3, 5, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 1];
        let left = (100..).zip(places).map(|(second, places)| {
            let now = Moment::from_nanos(second * 1_000_000_000);
            withheld.begin();
            assert_eq!(withheld.left("none", 0, ORPHAN, now), None);
            let left = withheld.left("app", places, ORPHAN, now);
            left.map(|it| it.as_secs())
        });
        let left: Vec<_> = left.map(|it| it.unwrap_or(0)).collect();
        // Another gateway may withhold its places for longer than this one would.
        assert_eq!(left, [0, 10, 9, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 10]);
    }
}
