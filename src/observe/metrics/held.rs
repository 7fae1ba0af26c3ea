use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::Key;

use crate::limit::Moment;

/// How long the series of a server are kept that is a server of no origin any more.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Shortest time between two searches for series to forget.
const SWEPT_EVERY: Duration = Duration::from_secs(10);

/// Series by their names and labels. Those of servers are forgotten a minute after the last one who counts into them.
///
/// Where the addresses of a name are servers, hundreds may come and go in an hour. All other series stay: what leaves the
/// file and comes back continues from its last values.
#[derive(Debug)]
pub(super) struct HeldSeries<T> {
    series: HashMap<Key, Held<T>>,
    swept: Moment,
}

#[derive(Debug)]
struct Held<T> {
    series: Arc<T>,
    /// Since when nobody counts into it.
    unused_since: Option<Moment>,
}

impl<T> Default for HeldSeries<T> {
    fn default() -> Self {
        Self {
            series: HashMap::new(),
            swept: Moment::default(),
        }
    }
}

impl<T: Default> HeldSeries<T> {
    /// The series of this key; each call returns the same one while anybody holds it.
    pub(super) fn get(&mut self, key: &Key, now: Moment) -> Arc<T> {
        self.sweep(now);
        let known = self.series.entry(key.clone()).or_insert_with(|| Held {
            series: Arc::default(),
            unused_since: None,
        });
        Arc::clone(&known.series)
    }

    /// All series that are not forgotten at `now`.
    pub(super) fn iter(&mut self, now: Moment) -> impl ExactSizeIterator<Item = (&Key, &T)> {
        self.sweep(now);
        self.series.iter().map(|(key, held)| (key, &*held.series))
    }

    fn sweep(&mut self, now: Moment) {
        if now.since(self.swept) < SWEPT_EVERY {
            return;
        }
        self.swept = now;
        self.series.retain(|key, held| {
            if !is_of_server(key) || Arc::strong_count(&held.series) > 1 {
                held.unused_since = None;
                return true;
            }
            let since = *held.unused_since.get_or_insert(now);
            now.since(since) < KEPT_FOR
        });
        if self.series.len() < self.series.capacity() / 4 {
            self.series.shrink_to_fit();
        }
    }
}

/// Whether a series is one of a server of an origin.
pub(super) fn is_of_server(key: &Key) -> bool {
    key.labels().any(|label| label.key() == "server")
}

#[cfg(test)]
mod tests {
    use ::metrics::Label;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos((1_000 + seconds) * 1_000_000_000)
    }

    fn key(label: &'static str, value: &'static str) -> Key {
        Key::from_parts("requests", vec![Label::new(label, value)])
    }

    #[test]
    fn the_series_of_a_server_are_forgotten_a_minute_after_it_has_left() {
        let mut all = HeldSeries::<u8>::default();
        let names = |all: &mut HeldSeries<u8>, seconds| {
            let names = all.iter(at(seconds)).map(|(key, _)| {
                let label = key.labels().next().expect("a label");
                label.value().to_owned()
            });
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        };
        let stays = all.get(&key("server", "stays"), at(0));
        let comes_back = all.get(&key("server", "comes back"), at(0));
        drop(all.get(&key("server", "leaves"), at(0)));
        drop(all.get(&key("zone", "zone"), at(0)));
        drop(comes_back);
        let four = ["comes back", "leaves", "stays", "zone"];
        assert_eq!(names(&mut all, 20), four);
        assert_eq!(names(&mut all, 79), four);
        let again = all.get(&key("server", "comes back"), at(79));
        assert_eq!(names(&mut all, 200), ["comes back", "stays", "zone"]);
        drop((stays, again));
        assert_eq!(names(&mut all, 1000).len(), 3);
        assert_eq!(names(&mut all, 1060), ["zone"]);
    }
}
