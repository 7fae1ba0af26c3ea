/// Places of the table, four for each counter: a search seldom looks at more than two.
const PLACES: usize = 256;
/// Stands for no counter.
const NONE: u8 = u8::MAX;

/// Finds counters by the hashes of their keys: open addressing with linear probing.
///
/// The caller keeps the hashes: `hash_of` tells that of a counter.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Allocated with the first counter.
    places: Option<Box<[u8; PLACES]>>,
}

impl Index {
    pub(super) fn find(&self, hash: u64, hash_of: impl Fn(usize) -> u64) -> Option<usize> {
        let places = self.places.as_ref()?;
        let mut place = home(hash);
        loop {
            let counter = usize::from(places[place]);
            if counter == usize::from(NONE) {
                return None;
            }
            if hash_of(counter) == hash {
                return Some(counter);
            }
            place = next(place);
        }
    }

    /// Adds a counter that is not there. There are always free places.
    pub fn add(&mut self, hash: u64, counter: usize) {
        let places = self.places.get_or_insert_with(|| Box::new([NONE; PLACES]));
        let mut place = home(hash);
        while places[place] != NONE {
            place = next(place);
        }
        places[place] = u8::try_from(counter).unwrap_or(NONE);
    }

    /// Removes a counter. Those behind it that it had pushed away move up.
    pub(super) fn remove(&mut self, hash: u64, counter: usize, hash_of: impl Fn(usize) -> u64) {
        let Some(places) = &mut self.places else {
            return;
        };
        let mut free = home(hash);
        while usize::from(places[free]) != counter {
            if places[free] == NONE {
                return;
            }
            free = next(free);
        }
        let mut place = free;
        loop {
            place = next(place);
            let other = places[place];
            if other == NONE {
                break;
            }
            let pushed = distance(home(hash_of(usize::from(other))), place);
            if pushed >= distance(free, place) {
                places[free] = other;
                free = place;
            }
        }
        places[free] = NONE;
    }
}

fn home(hash: u64) -> usize {
    usize::try_from(hash % PLACES as u64).unwrap_or_default()
}

fn next(place: usize) -> usize {
    (place + 1) % PLACES
}

/// How many places `to` is behind `from`.
fn distance(from: usize, to: usize) -> usize {
    (to + PLACES - from) % PLACES
}
