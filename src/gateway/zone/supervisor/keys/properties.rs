//! Property tests of [`Keys`] against a simple model.

use limit::Bucket;
use proptest::prelude::*;

use super::*;

/// Change of a key in the table.
#[derive(Clone, Copy, Debug)]
enum Action {
    Touch,
    Wake,
    Park,
    Pass,
    Remove,
}

/// Model of the table: keys in order of last use.
#[derive(Default)]
struct Model {
    active: Vec<Vec<u8>>,
    parked: Vec<Vec<u8>>,
    passing: Vec<Vec<u8>>,
}

impl Model {
    /// Removes a key. Returns whether it was there.
    fn take(&mut self, key: &[u8]) -> bool {
        let before = self.len();
        for list in [&mut self.active, &mut self.parked, &mut self.passing] {
            list.retain(|it| it != key);
        }
        before > self.len()
    }

    fn len(&self) -> usize {
        self.active.len() + self.parked.len() + self.passing.len()
    }

    fn list(&mut self, state: &State<()>) -> &mut Vec<Vec<u8>> {
        match state {
            State::Active(()) => &mut self.active,
            State::Parked(_) => &mut self.parked,
            State::Passing(_) => &mut self.passing,
        }
    }
}

/// Returns the name of a key. Some names are too long to be stored in the table itself.
fn name(key: u8) -> Vec<u8> {
    vec![b'a' + key; if key.is_multiple_of(3) { 100 } else { 5 }]
}

fn parked() -> State<()> {
    State::Parked(Account::Bucket(Bucket::new()))
}

fn passing() -> State<()> {
    State::Passing(Account::Bucket(Bucket::new()))
}

/// Returns the names of the keys of one state from `first` on.
fn order(keys: &Keys<()>, first: Option<u32>) -> Vec<Vec<u8>> {
    let known = keys.from(first);
    let names = known.map(|(index, _)| keys.known.get_index(index as usize).unwrap().0.to_vec());
    names.collect()
}

/// Returns actions, each with the number of its key.
fn steps() -> impl Strategy<Value = Vec<(Action, u8)>> {
    use Action::{Park, Pass, Remove, Touch, Wake};
    let action = proptest::sample::select(vec![Touch, Wake, Park, Pass, Remove]);
    proptest::collection::vec((action, 0..12_u8), 0..200)
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn the_table_is_a_list_by_last_use_for_each_state(steps in steps()) {
        let (mut keys, mut model) = (Keys::default(), Model::default());
        for (at, (action, key)) in (0..).map(Moment::from_nanos).zip(steps) {
            let name = name(key);
            match action {
                Action::Touch => {
                    if let Some(index) = keys.find(&name) {
                        keys.touch(index, at);
                        prop_assert_eq!(keys[index].used, at);
                        let list = model.list(&keys[index].state);
                        list.retain(|it| *it != name);
                        list.push(name);
                    }
                }
                Action::Wake | Action::Park | Action::Pass => {
                    let state = match action {
                        Action::Wake => State::Active(()),
                        Action::Park => parked(),
                        _ => passing(),
                    };
                    model.take(&name);
                    model.list(&state).push(name.clone());
                    match keys.find(&name) {
                        Some(index) => drop(keys.replace(index, state)),
                        None => drop(keys.add(&name, state, at)),
                    }
                }
                Action::Remove => {
                    let removed = keys.find(&name).and_then(|index| keys.remove(index));
                    prop_assert_eq!(removed.is_some(), model.take(&name));
                }
            }
            prop_assert_eq!(order(&keys, keys.oldest_active()), model.active.clone());
            let [parked, passing] = keys.parked_orders();
            prop_assert_eq!(order(&keys, parked), model.parked.clone());
            prop_assert_eq!(order(&keys, passing), model.passing.clone());
            let oldest = keys.oldest_parked().map(|index| keys[index].used);
            let without_actor = keys.known.values().filter(|known| known.parked().is_some());
            let of_each_order = without_actor.map(|known| known.used).min();
            prop_assert!(oldest >= of_each_order);
            // Of the first keys of both orders, the one that was used first.
            let firsts = keys.parked_orders().into_iter().flatten();
            prop_assert_eq!(oldest, firsts.map(|index| keys[index].used).min());
            prop_assert_eq!(keys.active(), model.active.len());
            prop_assert_eq!(keys.parked(), model.parked.len() + model.passing.len());
            prop_assert_eq!(keys.len(), model.len());
        }
    }

    #[test]
    fn a_walk_in_steps_sees_every_key_that_stays(steps in steps(), pace in 1..5_usize) {
        let mut keys = Keys::default();
        for key in 0..12 {
            keys.add(&name(key), parked(), Moment::from_nanos(0));
        }
        let (mut stays, mut seen, mut end) = ((0..12).map(name).collect::<Vec<_>>(), Vec::new(), usize::MAX);
        for (action, key) in steps {
            let (known, rest) = keys.walk(end, pace);
            seen.extend(known.map(|(key, _)| key.to_vec()));
            end = rest;
            if end == 0 {
                break;
            }
            let (name, index) = (name(key), keys.find(&name(key)));
            match action {
                Action::Remove => {
                    index.and_then(|index| keys.remove(index));
                    stays.retain(|it| *it != name);
                }
                Action::Park if index.is_none() => {
                    keys.add(&name, parked(), Moment::from_nanos(0));
                }
                _ => {}
            }
        }
        if end == 0 {
            prop_assert!(stays.iter().all(|key| seen.contains(key)));
        }
    }
}
