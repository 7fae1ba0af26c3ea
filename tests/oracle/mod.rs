//! Compares the HTTP/1 parser and the body decoder with hyper.
//!
//! For any bytes in any pieces, either both read the same messages (method, target, fields, body,
//! trailers, whether the connection stays open), or drip refuses them. If only hyper refuses them,
//! `compare` has the reason why drip need not.
//!
//! The bytes are those of tests/corpus, and generated and mutated ones. Some thousands take
//! seconds. To run more, or to repeat a run:
//!
//! ```text
//! ORACLE_CASES=1000000 ORACLE_SEED=42 cargo test --test plain oracle -- --nocapture
//! ```

mod case;
mod compare;
mod corpus;
mod generate;
mod grammar;
mod lists;
mod mutate;
mod reading;
mod reference;
mod script;
mod subject;

use std::env;
use std::hash::{BuildHasher, RandomState};

use crate::support::night::day_or_night;
use crate::support::rng::Rng;
use case::Case;

/// Returns a number from an environment variable.
fn variable(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

/// Compares cases with the oracle.
fn hold(generate: impl Fn(&mut Rng) -> Case) {
    let seed = variable("ORACLE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let cases = variable("ORACLE_CASES").unwrap_or(day_or_night(1000, 100_000));
    let first = variable("ORACLE_FIRST").unwrap_or(0);
    let (mut read, mut whole) = (0, 0);
    for nth in first..cases {
        let case = generate(&mut Rng::of(seed, nth));
        match case.check() {
            Ok(messages) => {
                read += u64::from(messages > 0);
                whole += messages;
            }
            Err(difference) => {
                let (case, difference) = case.reduced(difference);
                panic!("ORACLE_SEED={seed} ORACLE_FIRST={nth}: {difference}\n{case}");
            }
        }
    }
    println!("{cases} cases, {read} with messages that both read whole, {whole} in all");
    // Otherwise almost only refusals would be compared.
    let are_enough = first > 0 || read * 4 > cases;
    assert!(are_enough, "{read} of {cases} have a whole message");
}

#[test]
fn requests_are_read_as_hyper_reads_them() {
    hold(generate::requests);
}

#[test]
fn answers_are_read_as_hyper_reads_them() {
    hold(generate::answers);
}

#[test]
fn the_corpus_is_read_as_hyper_reads_it() {
    let mut whole = 0;
    for (name, bytes) in corpus::all() {
        let is_answer = bytes.starts_with(b"HTTP/");
        let cases = corpus::each_cut(bytes).into_iter().flat_map(|pieces| {
            if is_answer {
                vec![
                    Case::answers(pieces.clone(), false),
                    Case::answers(pieces, true),
                ]
            } else {
                vec![Case::requests(pieces)]
            }
        });
        for case in cases {
            match case.check() {
                Ok(messages) => whole += messages,
                Err(difference) => panic!("{name}: {difference}\n{case}"),
            }
        }
    }
    assert!(whole > 100, "{whole} messages were whole");
}
