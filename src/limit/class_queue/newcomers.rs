//! Property test of adversarial arrivals: classes that come and go, with keys never seen before.
//!
//! Each key sends one request. A departure without waiting is charged to its class all the same.

use proptest::prelude::*;
use testing::config;

use super::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Step {
    /// One request each of this number of new keys of a class.
    Join(usize, u32),
    /// The next waiter departs.
    Take,
    /// A request of a class departs at once if there are no waiters.
    Depart(usize),
    /// The client of a waiter disconnects.
    Leave(proptest::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..NAMES.len(), 1..4_u32).prop_map(|(class, keys)| Step::Join(class, keys)),
        6 => Just(Step::Take),
        1 => (0..NAMES.len()).prop_map(Step::Depart),
        1 => any::<proptest::sample::Index>().prop_map(Step::Leave),
    ]
}

fn share(class: usize, key: u32) -> Share<u32> {
    Share {
        class: Arc::from(NAMES[class]),
        ..Share::of(key)
    }
}

proptest! {
    #![proptest_config(config())]

    /// Bounds the departures of one class between two departures of another by their weights.
    ///
    /// While a class has waiters, another one departs as often as the ratio of their weights says,
    /// and at most two times more.
    #[test]
    fn a_class_waits_for_the_weight_of_each_other_class_whoever_comes(
        weights in prop::array::uniform3(1_u32..20),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut queue = ClassQueue::<u32, usize>::default();
        let class = |(name, weight): (&str, u32)| Class { name: Arc::from(name), weight };
        queue.set_classes(&NAMES.into_iter().zip(weights).map(class).collect::<Vec<_>>());
        let mut waiting: Vec<(usize, ClassPosition)> = Vec::new();
        // For each class: departures of each other class since it began to wait or last departed.
        let mut ahead = [[0_u32; 3]; 3];
        let mut keys = 0..;
        for step in steps {
            match step {
                Step::Join(class, count) => {
                    for key in keys.by_ref().take(count as usize) {
                        waiting.push((class, queue.join(&share(class, key), 1, class)));
                    }
                }
                Step::Take => {
                    let Some(next) = queue.take() else { continue };
                    let departed = next.waiter;
                    ahead[departed] = [0; 3];
                    for (class, count) in ahead.iter_mut().enumerate() {
                        if class == departed {
                            continue;
                        }
                        count[departed] += 1;
                        let waits = queue.classes().nth(class).is_some_and(|(_, depth)| depth > 0);
                        let most = weights[departed].div_ceil(weights[class]) + 2;
                        let is_fair = !waits || count[departed] <= most;
                        prop_assert!(is_fair, "{departed} before {class}: {count:?} of {weights:?}");
                    }
                }
                Step::Depart(class) => {
                    if queue.is_empty() {
                        queue.depart(&share(class, u32::MAX), 1);
                    }
                }
                Step::Leave(index) => {
                    if !waiting.is_empty() {
                        let (_, position) = waiting.remove(index.index(waiting.len()));
                        queue.leave(&position);
                    }
                }
            }
            for (class, (_, depth)) in queue.classes().enumerate() {
                if depth == 0 {
                    ahead[class] = [0; 3];
                }
            }
        }
    }
}
