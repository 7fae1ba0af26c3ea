//! Names by which keys are shown to people: on the page, in the API, metrics and logs.

use config::{Zone, mask_key};

use super::escape::{cut, escape, escape_unquoted, in_quotes};

/// Name of the bucket that requests of unknown keys share.
///
/// No escaped key looks like this: there a backslash is followed by another one or by `xNN`.
pub const NEW_KEYS_NAME: &str = "\\(new keys)";

/// Display of a zone's keys: as they are, or masked.
///
/// All code that shows a key of a request takes its name from here.
#[derive(Clone, Copy, Debug)]
pub struct KeyNames<'z>(KeyOwner<'z>);

/// Owner of the keys.
#[derive(Clone, Copy, Debug)]
enum KeyOwner<'z> {
    /// No zone.
    None,
    Zone(&'z Zone),
    /// A zone that was removed from the file, by its name.
    Former(&'z str),
}

impl<'z> KeyNames<'z> {
    /// Names of the keys of this zone.
    pub fn of(zone: &'z Zone) -> Self {
        Self(KeyOwner::Zone(zone))
    }

    /// Names of the keys at a gate: those of the zone that shares the gate.
    ///
    /// Without such a zone, all requests have the empty key there.
    pub fn at_gate(share: Option<&'z Zone>) -> Self {
        Self(share.map_or(KeyOwner::None, KeyOwner::Zone))
    }

    /// Names of the keys of a zone that was removed from the file.
    ///
    /// They are masked, because it is no longer known whether they are secret.
    pub fn of_former_zone(name: &'z str) -> Self {
        Self(KeyOwner::Former(name))
    }

    /// Returns the full name of a key, escaped like [`escape_unquoted`], or its masked name.
    ///
    /// The empty key is the bucket that requests of unknown keys share.
    pub fn full(self, key: &[u8]) -> String {
        self.shared_or_masked(key)
            .unwrap_or_else(|| escape_unquoted(key))
    }

    /// As [`full`](Self::full), for a text between quotes.
    pub fn full_quoted(self, key: &[u8]) -> String {
        match self.masked(key) {
            Some(name) => name,
            None => escape(key),
        }
    }

    /// As [`full`](Self::full), of limited length.
    pub fn short(self, key: &[u8]) -> String {
        self.shared_or_masked(key).unwrap_or_else(|| cut(key))
    }

    /// As [`short`](Self::short), for a text between quotes.
    pub fn short_quoted(self, key: &[u8]) -> String {
        in_quotes(&self.short(key))
    }

    /// Returns the masked name of a key, if the zone masks its keys.
    pub fn masked(self, key: &[u8]) -> Option<String> {
        match self.0 {
            KeyOwner::None => None,
            KeyOwner::Zone(zone) => zone.masked(key),
            KeyOwner::Former(zone) => Some(mask_key(zone, key)),
        }
    }

    /// Returns the name of the shared bucket, or the masked name of a key.
    ///
    /// `None`: the key itself is shown.
    fn shared_or_masked(self, key: &[u8]) -> Option<String> {
        if key.is_empty() {
            return Some(NEW_KEYS_NAME.to_owned());
        }
        self.masked(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::escape::unescape;

    #[test]
    fn no_key_of_a_client_is_written_like_the_bucket_of_unknown_keys() {
        let names = KeyNames::at_gate(None);
        assert_eq!(names.short(b""), NEW_KEYS_NAME);
        assert_ne!(names.short(NEW_KEYS_NAME.as_bytes()), NEW_KEYS_NAME);
        assert_eq!(unescape(NEW_KEYS_NAME), None);
    }
}
