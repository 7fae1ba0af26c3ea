//! Shared parts of unit tests: amount of search, and inputs for parsers of untrusted bytes.
//!
//! `search` decides how many seeds and cases run, and names the environment variables that change
//! it.
//!
//! The inputs are a corpus in `tests/corpus`, and mutations. Each folder has small inputs, one per
//! file and exact to the byte, that a parser must read in every run. The same properties are then
//! checked on mutations of the inputs and on arbitrary bytes.

mod random;
mod search;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

pub use self::random::Random;
pub use self::search::{Seeds, cases, config, is_long_run, known_seeds, seeds, some_of, variable};

/// Maximum size of mutated inputs, so that no mutation makes a test slow.
const MAX_SIZE: usize = 16 * 1024;

/// Tokens that parsers look for, inserted at random.
#[rustfmt::skip]
const TOKENS: [&[u8]; 32] = [
    b"\0", b"\r\n", b"\n", b"\t", b" ", b"\"", b"\\", b"'", b",", b";", b":", b"=", b"/", b"//",
    b"/../", b"/.", b"%", b"%2e", b"%2F", b"%25", b"$", b"${", b"}", b"[", b"]", b"0",
    b"9999999999", b"-1", b".5", b"\xff", "é".as_bytes(), "\u{2028}".as_bytes(),
];

/// Returns the inputs of a folder in `tests/corpus`, with their names.
///
/// # Panics
///
/// Panics if the folder has few files, or one cannot be read.
pub fn corpus(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/corpus")
        .join(folder);
    let files =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs = files
        .map(|file| {
            let file = file.unwrap();
            let name = file.file_name().to_string_lossy().into_owned();
            (name, fs::read(file.path()).unwrap())
        })
        .collect::<Vec<_>>();
    inputs.sort();
    assert!(inputs.len() >= 10, "{} is too small", folder.display());
    inputs
}

/// Checks a property on each input of a folder.
///
/// # Panics
///
/// Panics if the property does not hold.
pub fn replay(folder: &str, holds: impl Fn(&[u8]) -> Result<(), TestCaseError>) {
    for (name, input) in corpus(folder) {
        holds(&input).unwrap_or_else(|error| panic!("{folder}/{name}: {error}"));
    }
}

/// Defines two tests of a property of bytes: on each input of a folder, and on mutated inputs.
///
/// `$any`: name of the second test. `$holds`: function that checks the property.
#[macro_export]
macro_rules! property_of_bytes {
    ($any:ident, $folder:literal, $holds:ident) => {
        #[test]
        fn the_corpus_holds() {
            $crate::replay($folder, $holds);
        }

        ::proptest::proptest! {
            #![proptest_config($crate::config())]

            #[test]
            fn $any(bytes in $crate::bytes($folder)) {
                $holds(&bytes)?;
            }
        }
    };
}

/// Checks a property on each input of a folder, for parsers of text.
pub fn replay_text(folder: &str, holds: impl Fn(&str) -> Result<(), TestCaseError>) {
    replay(folder, |bytes| holds(&String::from_utf8_lossy(bytes)));
}

/// Generates arbitrary bytes, most often a mutated input of a folder.
pub fn bytes(folder: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let inputs = corpus(folder)
        .into_iter()
        .map(|(_, input)| input)
        .collect::<Vec<_>>();
    let input = prop::sample::select(inputs);
    let mutated = (
        input.clone(),
        input,
        prop::collection::vec(mutation(), 1..6),
    )
        .prop_map(|(mut input, other, mutations)| {
            for mutation in mutations {
                mutation.apply(&mut input, &other);
                input.truncate(MAX_SIZE);
            }
            input
        });
    prop_oneof![
        6 => mutated,
        1 => prop::collection::vec(any::<u8>(), 0..200),
        1 => prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..30)
            .prop_map(|tokens| tokens.concat()),
    ]
}

/// Generates arbitrary text, most often a mutated input of a folder.
pub fn text(folder: &str) -> impl Strategy<Value = String> + use<> {
    bytes(folder).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Insert(Index, &'static [u8]),
    Replace(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize),
    Truncate(Index),
    Splice(Index, Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let few = || prop_oneof![3 => 1..4usize, 1 => 4..100usize];
    prop_oneof![
        3 => (at(), 0..8u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        3 => (at(), prop::sample::select(TOKENS.to_vec()))
            .prop_map(|(at, token)| Mutation::Insert(at, token)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        2 => (at(), few()).prop_map(|(at, count)| Mutation::Remove(at, count)),
        1 => (at(), few()).prop_map(|(at, count)| Mutation::Repeat(at, count)),
        1 => at().prop_map(Mutation::Truncate),
        2 => (at(), at(), few()).prop_map(|(at, from, count)| Mutation::Splice(at, from, count)),
    ]
}

impl Mutation {
    fn apply(self, input: &mut Vec<u8>, other: &[u8]) {
        let end = input.len();
        let index_in = |at: Index| at.index(end + 1);
        let piece =
            |of: &[u8], from: usize, count: usize| of[from..of.len().min(from + count)].to_vec();
        match self {
            Self::Insert(at, token) => {
                drop(input.splice(index_in(at)..index_in(at), token.to_vec()));
            }
            Self::Truncate(at) => input.truncate(index_in(at)),
            Self::Splice(at, from, count) => {
                let from = from.index(other.len() + 1);
                let piece = piece(other, from, count);
                drop(input.splice(index_in(at)..index_in(at), piece));
            }
            _ if end == 0 => {}
            Self::Flip(at, bit) => input[at.index(end)] ^= 1 << bit,
            Self::Replace(at, byte) => input[at.index(end)] = byte,
            Self::Remove(at, count) => {
                let at = at.index(end);
                drop(input.drain(at..end.min(at + count)));
            }
            Self::Repeat(at, count) => {
                let at = at.index(end);
                let piece = piece(input, at, count);
                drop(input.splice(at..at, piece));
            }
        }
    }
}
