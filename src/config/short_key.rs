//! Shortens long keys to bound their memory.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

/// Maximum length of a key that is stored in full, in bytes.
///
/// A longer key is stored as its start and a hash. This bounds the memory of a million keys.
const MAX_SIZE: usize = 128;
/// Length of the start that a short form keeps, in bytes.
const KEPT: usize = 110;

/// Returns `key`, or its short form if it is too long.
///
/// The short form of a short form is itself.
pub fn short_key(key: &[u8]) -> Cow<'_, [u8]> {
    if key.len() <= MAX_SIZE {
        return key.into();
    }
    // This hasher gives the same result in every process.
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let mut short = key[..KEPT].to_vec();
    // Writing to memory cannot fail.
    let _ = write!(short, "~{:016x}", hasher.finish());
    short.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_shortened_to_its_start_and_a_hash() {
        assert_eq!(*short_key(b"192.0.2.1"), *b"192.0.2.1");
        let long = |last: &str| format!("{}{last}", "x".repeat(100_000)).into_bytes();
        let (one, other) = (long("1"), long("2"));
        assert!(short_key(&one).len() <= MAX_SIZE);
        assert!(short_key(&one).starts_with(b"xxx"));
        assert_ne!(short_key(&one), short_key(&other));
        assert_eq!(short_key(&one), short_key(&long("1")));
    }
}
