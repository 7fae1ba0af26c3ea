use std::cmp::Reverse;
use std::collections::HashMap;

use config::short_key;
use foldhash::fast::RandomState;

use super::KEEPS;
use super::request::Name;
use crate::shown::share;

/// Maximum number of paths that are counted one by one.
const MAX_PATHS: usize = 1 << 16;

/// How many requests there were, and how many of them would go to the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// Under each of [`KEEPS`].
    pub(crate) sent: [u64; 3],
}

/// The requests of one path.
pub(crate) struct PathTally {
    /// The path, after its host if the log has several; its begin and a hash if it is long.
    pub(crate) path: Box<[u8]>,
    pub(crate) tally: Tally,
}

/// The requests of each path, in bounded memory.
#[derive(Default)]
pub(super) struct Paths {
    numbers: HashMap<Box<[u8]>, u32, RandomState>,
    tallies: Vec<Tally>,
    all: Tally,
    beyond: Tally,
    /// The host of the first request, and whether another one was named.
    host: Option<Box<str>>,
    has_hosts: bool,
    /// Buffer for the name of the current request.
    name: Vec<u8>,
}

impl Tally {
    /// The requests that the departure of another one answers, with the longest `keep`.
    pub(crate) fn saved(&self) -> u64 {
        self.requests - self.sent[KEEPS.len() - 1]
    }

    /// The share of requests that the departure of another one answers.
    pub(crate) fn share_saved(&self, keep: usize) -> f64 {
        share(self.requests - self.sent[keep], self.requests)
    }

    /// The sum of two.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        for (sum, sent) in self.sent.iter_mut().zip(other.sent) {
            *sum += sent;
        }
        self
    }

    fn add(&mut self, departs: [bool; 3]) {
        self.requests += 1;
        for (sent, departs) in self.sent.iter_mut().zip(departs) {
            *sent += u64::from(departs);
        }
    }
}

impl Paths {
    /// The number of a path; `None` if there are too many to count them one by one.
    pub(super) fn number(&mut self, name: &Name) -> Option<u32> {
        let first = self.host.get_or_insert_with(|| (&*name.host).into());
        self.has_hosts |= **first != *name.host;
        self.name.clear();
        self.name.extend_from_slice(name.host.as_bytes());
        self.name.extend_from_slice(name.path.as_bytes());
        let name = short_key(&self.name);
        if let Some(number) = self.numbers.get(&*name) {
            return Some(*number);
        }
        if self.tallies.len() == MAX_PATHS {
            return None;
        }
        let number = u32::try_from(self.tallies.len()).ok()?;
        self.tallies.push(Tally::default());
        self.numbers.insert(name.into(), number);
        Some(number)
    }

    /// Counts a request of this path, which goes to the origin or not under each of [`KEEPS`].
    pub(super) fn count(&mut self, path: Option<u32>, departs: [bool; 3]) {
        self.all.add(departs);
        let tally = path.and_then(|path| self.tallies.get_mut(path as usize));
        tally.unwrap_or(&mut self.beyond).add(departs);
    }

    /// All requests; those of each path, by what is saved of them; and those of further paths.
    ///
    /// Hosts are named only if there are several.
    pub(super) fn end(self) -> (Tally, Vec<PathTally>, Tally) {
        let host = self.host.filter(|_| !self.has_hosts).unwrap_or_default();
        let named = self.numbers.into_iter().filter_map(|(name, number)| {
            let tally = *self.tallies.get(number as usize)?;
            let bare = name.strip_prefix(host.as_bytes());
            let bare = bare.filter(|bare| !bare.is_empty());
            let path = bare.map(Into::into).unwrap_or(name);
            Some(PathTally { path, tally })
        });
        let mut paths: Vec<PathTally> = named.collect();
        paths.retain(|it| it.tally.requests > 0);
        paths.sort_unstable_by(|one, other| {
            let order = |it: &PathTally| Reverse((it.tally.saved(), it.tally.requests));
            (order(one), &one.path).cmp(&(order(other), &other.path))
        });
        (self.all, paths, self.beyond)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn paths_beyond_those_that_are_counted_one_by_one_are_counted_together() {
        let mut paths = Paths::default();
        for nth in 0..MAX_PATHS + 3 {
            let path = format!("/{nth}");
            let host = Cow::Borrowed("a");
            let number = paths.number(&Name { host, path: &path });
            paths.count(number, [true, nth > 0, false]);
        }
        let (all, paths, beyond) = paths.end();
        assert_eq!(all.requests, MAX_PATHS as u64 + 3);
        assert_eq!((paths.len(), beyond.requests), (MAX_PATHS, 3));
        assert_eq!(beyond.sent, [3, 3, 0]);
        assert_eq!(&*paths[0].path, b"/0");
        let sum = paths.iter().fold(beyond, |sum, it| sum.and(&it.tally));
        assert_eq!(sum, all);
    }
}
