//! Amount of search in unit tests: seeds of simulations, and cases of properties.
//!
//! An everyday run is short, and searches other seeds each time. A long run is for a night, or for
//! a change of what a simulation covers. Environment variables decide:
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `DRIP_LONG=1` | the long search: hundreds of times the seeds, and 2,048 cases of most
//! properties | everyday |
//! | `DRIP_SEEDS=N` | number of seeds of each simulation | by test |
//! | `DRIP_FIRST_SEED=N` | first of these seeds | random |
//! | `DRIP_SEED=N` | runs this seed alone | |
//! | `PROPTEST_CASES=N` | number of cases of each property | by test |
//! | `PROPTEST_RNG_SEED=N` | seed of each property's cases | random |
//!
//! A variable with a number overrides `DRIP_LONG`. A test that fails prints the command that
//! repeats it. A simulation with a list of scenarios chooses some of them by these seeds. Tests
//! with fixed seeds (a broken script is found, a seed that has failed) do not use this module: they
//! name their seeds.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::panic::Location;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Number of cases of a property in an everyday run, unless the test sets another number.
const EVERYDAY_CASES: u32 = 32;
/// Number of cases of a property in a long run: eight times proptest's default.
const LONG_CASES: u32 = 2048;

/// Number of seeds from which a mean over them is close to that of all seeds.
const MANY: u64 = 50;

/// Random number of this run. Below 2³², so that it is short to type.
static RUN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0) >> 32);

/// Seeds that a test searches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    range: Range<u64>,
    is_single: bool,
}

impl Seeds {
    /// Returns the number of seeds.
    pub fn count(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns whether `DRIP_SEED` names the only seed.
    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// Returns whether there are enough seeds for means over them. A single seed may be untypical.
    pub fn are_many(&self) -> bool {
        self.count() >= MANY
    }

    /// Returns the seeds, in order.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Chooses the seeds by the environment. `first`: the first seed if no variable names one.
    fn of(variable: impl Fn(&str) -> Option<u64>, first: u64, everyday: u64, long: u64) -> Self {
        if let Some(seed) = variable("DRIP_SEED") {
            return Self {
                range: seed..seed + 1,
                is_single: true,
            };
        }
        let default = if is_long(&variable) { long } else { everyday };
        let count = variable("DRIP_SEEDS").unwrap_or(default);
        let first = variable("DRIP_FIRST_SEED").unwrap_or(first);
        Self {
            range: first..first + count,
            is_single: false,
        }
    }

    fn print(self, test: &str) -> Self {
        let Range { start, end } = self.range;
        println!("Seeds from {start} to before {end}. To run one of them:");
        println!("{}DRIP_SEED={start} cargo test --lib {test}", prefix());
        self
    }
}

/// Returns the seeds of a test: by default `everyday` or `long` seeds, from a random one on.
#[track_caller]
pub fn seeds(everyday: u64, long: u64) -> Seeds {
    Seeds::of(variable, *RUN, everyday, long).print(&test(Location::caller()))
}

/// Returns the seeds of a test that would sometimes fail with random seeds.
///
/// The bounds of such a test are for the share of a few runs. An everyday run takes `everyday`
/// neighbours of the seeds `known`, which all pass. A long run begins with a random seed.
#[track_caller]
pub fn known_seeds(everyday: u64, known: Range<u64>, long: u64) -> Seeds {
    let first = if is_long(variable) {
        *RUN
    } else {
        known.start + *RUN % (known.end - known.start - everyday + 1)
    };
    Seeds::of(variable, first, everyday, long).print(&test(Location::caller()))
}

/// Returns items of a list: `everyday` different ones that change with each run, or all.
///
/// A long run returns all.
///
/// # Panics
///
/// Panics if the list is empty.
#[track_caller]
pub fn some_of<T: Clone>(all: &[T], everyday: u64) -> Vec<T> {
    let count = all.len() as u64;
    let seeds = Seeds::of(variable, *RUN, everyday, count);
    let seeds = seeds.print(&test(Location::caller()));
    let range = seeds.range().take(all.len());
    let index = |seed| usize::try_from(seed % count).expect("an index of the list");
    range.map(|seed| all[index(seed)].clone()).collect()
}

/// Returns the configuration of property tests. A failure writes nothing into the source tree.
#[track_caller]
pub fn config() -> ProptestConfig {
    cases(EVERYDAY_CASES, LONG_CASES)
}

/// Returns the configuration of a property with its own number of cases.
#[track_caller]
pub fn cases(everyday: u32, long: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default.cases,
        None if is_long(variable) => long,
        None => everyday,
    };
    let seed = match default.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => *RUN,
    };
    let test = test(Location::caller());
    println!("{cases} cases. To run the same again:");
    let long = prefix();
    println!("{long}PROPTEST_CASES={cases} PROPTEST_RNG_SEED={seed} cargo test --lib {test}");
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        // As many for each case as proptest allows by default.
        max_global_rejects: default.max_global_rejects.max(cases.saturating_mul(4)),
        ..default
    }
}

/// Returns the number in an environment variable; `None` if it is not set.
///
/// # Panics
///
/// Panics if the variable is not a number.
pub fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text:?} is no whole number")))
}

/// Returns whether this is a long run.
pub fn is_long_run() -> bool {
    is_long(variable)
}

/// Returns the beginning of a command that repeats a part of a long run.
///
/// A long run also has other sizes.
fn prefix() -> &'static str {
    if is_long_run() { "DRIP_LONG=1 " } else { "" }
}

fn is_long(variable: impl Fn(&str) -> Option<u64>) -> bool {
    variable("DRIP_LONG").unwrap_or(0) > 0
}

/// Returns the name of the running test, or the module of `caller` if the thread has no test name.
fn test(caller: &Location) -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) if name.contains("::") => name.to_owned(),
        _ => module(caller.file()),
    }
}

/// Returns the module path of a source file.
fn module(file: &str) -> String {
    let (_, path) = file.rsplit_once("src/").unwrap_or(("", file));
    // The first folder is the crate's.
    let (_, path) = path.split_once('/').unwrap_or(("", path));
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.replace('/', "::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, u64)]) -> Seeds {
        let find = |name: &str| Some(variables.iter().find(|it| it.0 == name)?.1);
        Seeds::of(find, 7, 10, 1000)
    }

    #[test]
    fn variables_say_which_seeds_run() {
        let many = |range| Seeds {
            range,
            is_single: false,
        };
        assert_eq!(of(&[]), many(7..17));
        assert_eq!(of(&[("DRIP_LONG", 0)]), many(7..17));
        assert_eq!(of(&[("DRIP_LONG", 1)]), many(7..1007));
        assert_eq!(of(&[("DRIP_LONG", 1), ("DRIP_SEEDS", 3)]), many(7..10));
        let from = ("DRIP_FIRST_SEED", 100);
        assert_eq!(of(&[from, ("DRIP_SEEDS", 3)]), many(100..103));
        let one = of(&[("DRIP_SEED", 42), ("DRIP_LONG", 1), ("DRIP_SEEDS", 3)]);
        assert!(one.is_single() && one.range() == (42..43) && one.count() == 1);
    }

    #[test]
    fn the_module_of_a_file_is_a_filter_of_its_tests() {
        let files = [
            "src/gateway/simulation/tests.rs",
            "src/config/file/tests/mod.rs",
        ];
        let modules = files.map(module);
        assert_eq!(modules, ["simulation::tests", "file::tests"]);
        assert!(test(Location::caller()).starts_with("search::tests"));
    }
}
