//! Short forms of clients' keys, which bound their memory, and masked names, which hide them.
//!
//! A key is the value by which a zone selects a bucket for a request, such as an API key. With
//! `mask_keys = true` in the zone, all outputs show a masked name instead, such as
//! `key-3f9a1c02b7e4`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::sync::LazyLock;

use ring::hmac::{self, HMAC_SHA256};
use ring::rand::SystemRandom;

use super::Zone;

/// Maximum length of a key that is stored in full, in bytes.
///
/// A longer key is stored as its start and a hash. This bounds the memory of a million keys.
const MAX_SIZE: usize = 128;
/// Length of the start that a short form keeps, in bytes.
const KEPT_BYTES: usize = 110;

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
    let mut short = key[..KEPT_BYTES].to_vec();
    // Writing to memory cannot fail.
    let _ = write!(short, "~{:016x}", hasher.finish());
    short.into()
}

/// Start of each masked name.
const PREFIX: &str = "key-";
/// Length of the hash in a masked name, in bytes.
///
/// With ten thousand keys, two have the same name once in six million process starts.
const HASH_BYTES: usize = 6;

/// Secret of this process; `None` if the system has no random numbers.
///
/// Without the secret, nobody can find a key by trying which key gives a name.
static SECRET: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(HMAC_SHA256, &SystemRandom::new()).ok());

impl Zone {
    /// Returns the name to show instead of a key, such as `key-3f9a1c02b7e4`.
    ///
    /// `None` if keys are shown unmasked. A key and its short form (`short_key`) have the same
    /// name. The name differs in another zone and after a restart.
    pub fn masked(&self, key: &[u8]) -> Option<String> {
        self.mask_keys.then(|| mask_key(&self.name, key))
    }

    /// Returns whether a text looks like a masked name, and the zone masks its keys.
    pub fn is_masked_name(&self, text: &[u8]) -> bool {
        let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let is_hash = |text: &[u8]| text.len() == 2 * HASH_BYTES && text.iter().all(is_digit);
        let hash = text.strip_prefix(PREFIX.as_bytes());
        self.mask_keys && hash.is_some_and(is_hash)
    }
}

/// Returns the masked name of a key. `zone`: name of the zone that has the key.
pub fn mask_key(zone: &str, key: &[u8]) -> String {
    let Some(secret) = &*SECRET else {
        return format!("{PREFIX}{}", "?".repeat(2 * HASH_BYTES));
    };
    let mut context = hmac::Context::with_key(secret);
    context.update(zone.as_bytes());
    // Separates both texts: no zone has a zero byte in its name.
    context.update(&[0]);
    context.update(&short_key(key));
    let tag = context.sign();
    let mut name = PREFIX.to_owned();
    for byte in tag.as_ref().iter().take(HASH_BYTES) {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// Returns a zone of this name with `more` lines.
    fn zone(name: &str, more: &str) -> Zone {
        let text = format!(
            "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n[zones.{name}]\nkey = \"$host\"\nrate = \"1r/s\"\n{more}\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"{name}\" }}]\n"
        );
        let settings = parse(&text, std::path::Path::new("gateway.toml"), true);
        settings.expect("a right file").zones.remove(0)
    }

    #[test]
    fn masked_names_differ_by_key_and_reveal_nothing_else() {
        let masked = zone("z", "mask_keys = true");
        let name = |key: &[u8]| masked.masked(key).expect("a name");
        assert_eq!(name(b"alice"), name(b"alice"));
        assert_ne!(name(b"alice"), name(b"bob"));
        let elsewhere = zone("y", "mask_keys = true").masked(b"alice");
        assert_ne!(Some(name(b"alice")), elsewhere, "another zone");
        assert_eq!(name(b"alice").len(), "key-3f9a1c02b7e4".len());
        assert!(masked.is_masked_name(name(b"alice").as_bytes()));
        for other in ["alice", "key-", "key-3f9a1c02b7e", "key-3F9A1C02B7E4"] {
            assert!(!masked.is_masked_name(other.as_bytes()), "{other}");
        }
        let plain = zone("z", "");
        assert_eq!(plain.masked(b"alice"), None);
        assert!(!plain.is_masked_name(name(b"alice").as_bytes()));
    }

    #[test]
    fn a_long_key_is_shortened_to_its_start_and_a_hash_and_keeps_its_name() {
        assert_eq!(*short_key(b"192.0.2.1"), *b"192.0.2.1");
        let long = |last: &str| format!("{}{last}", "x".repeat(100_000)).into_bytes();
        let (one, other) = (long("1"), long("2"));
        assert!(short_key(&one).len() <= MAX_SIZE);
        assert!(short_key(&one).starts_with(b"xxx"));
        assert_ne!(short_key(&one), short_key(&other));
        assert_eq!(short_key(&one), short_key(&long("1")));
        // A key and its short form have the same masked name.
        let zone = zone("z", "mask_keys = true");
        assert_ne!(zone.masked(&one), zone.masked(&other));
        assert_eq!(zone.masked(&one), zone.masked(&short_key(&one)));
    }
}
