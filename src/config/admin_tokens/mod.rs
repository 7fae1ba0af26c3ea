//! Tokens of the admin port, from the environment.
//!
//! `DRIP_ADMIN_TOKEN` has one or several tokens that permit changes, and `DRIP_ADMIN_READ_TOKEN`
//! has one that permits reading only. `entries` splits a list of tokens.

mod entries;

#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::sync::Arc;

use subtle::ConstantTimeEq;

use self::entries::Entry;

/// Variable with the tokens for changes.
const ADMIN_TOKEN: &str = "DRIP_ADMIN_TOKEN";
/// Variable with the token for reading.
const READ_TOKEN: &str = "DRIP_ADMIN_READ_TOKEN";

/// Minimum length of a secret after a name, in bytes.
///
/// In earlier versions the whole variable was one token, which may contain a colon. The part after
/// that colon must not become a token that can be guessed.
const MIN_NAMED_SECRET: usize = 6;

/// Tokens of the admin port.
///
/// The type has no `Debug`, because tokens are secrets.
#[derive(Clone, Default)]
pub struct AdminTokens {
    /// Tokens accepted for changes. Empty: no token can change anything.
    changing: Vec<AdminToken>,
    /// `None`: reading needs no token.
    reading: Option<Vec<u8>>,
}

/// Secret that is accepted for changes, and the name of its token.
#[derive(Clone)]
struct AdminToken {
    secret: Vec<u8>,
    name: Option<Arc<str>>,
}

/// Role that the token of a request grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRole {
    /// No token, or an unknown one.
    Unknown,
    /// Reading.
    Reader,
    /// Reading and changing, with the name of the token.
    Admin(Option<Arc<str>>),
}

/// Returns whether the environment has a token for the admin port.
pub fn has_admin_token() -> bool {
    let mut names = [ADMIN_TOKEN, READ_TOKEN].iter();
    names.any(|name| !read_variable(name).is_empty())
}

/// Returns the value of a variable without the white space around it; empty if it is not set.
///
/// A file that a token comes from usually ends with a newline.
fn read_variable(name: &str) -> Vec<u8> {
    let value = env::var_os(name).map(OsString::into_encoded_bytes);
    value.unwrap_or_default().trim_ascii().to_vec()
}

impl AdminTokens {
    /// Reads `DRIP_ADMIN_TOKEN` and `DRIP_ADMIN_READ_TOKEN`.
    ///
    /// # Errors
    ///
    /// Names the wrong variable, and shows what would be right.
    pub fn from_environment() -> Result<Self, String> {
        Self::parse(&read_variable(ADMIN_TOKEN), &read_variable(READ_TOKEN))
    }

    /// Parses the values of `DRIP_ADMIN_TOKEN` and `DRIP_ADMIN_READ_TOKEN`.
    ///
    /// An empty value counts as not set.
    ///
    /// # Errors
    ///
    /// Names the wrong variable, and shows what would be right. Never contains the secret.
    pub fn parse(admin: &[u8], read: &[u8]) -> Result<Self, String> {
        for (variable, value) in [(ADMIN_TOKEN, admin), (READ_TOKEN, read)] {
            if value.iter().any(u8::is_ascii_control) {
                return Err(format!(
                    "{variable}: it has a control character, which no request can send; choose another token"
                ));
            }
        }
        let changing =
            parse_changing(admin).map_err(|problem| format!("{ADMIN_TOKEN}: {problem}"))?;
        if changing.iter().any(|token| token.secret == read) {
            return Err(format!(
                "{READ_TOKEN}: the same token is in {ADMIN_TOKEN}, which permits changes; choose another token"
            ));
        }
        let reading = (!read.is_empty()).then(|| read.to_vec());
        Ok(Self { changing, reading })
    }

    /// Returns whether reading needs a token.
    pub fn protects_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Returns whether there is a token for changes.
    pub fn permits_changes(&self) -> bool {
        !self.changing.is_empty()
    }

    /// Returns whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.changing.is_empty() && self.reading.is_none()
    }

    /// Returns the role that a token grants.
    ///
    /// The token is compared with all known ones, each in constant time, so that the duration of
    /// the comparison tells a client nothing.
    pub fn role(&self, token: &[u8]) -> TokenRole {
        let mut role = TokenRole::Unknown;
        let reading = self.reading.as_deref();
        if reading.is_some_and(|known| known.ct_eq(token).into()) {
            role = TokenRole::Reader;
        }
        for known in &self.changing {
            if bool::from(known.secret.ct_eq(token)) {
                role = TokenRole::Admin(known.name.clone());
            }
        }
        role
    }

    /// Returns the token that a client sends to read: the weakest one it has.
    pub fn token_to_read(&self) -> Option<&[u8]> {
        self.reading.as_deref().or_else(|| self.first_for_changes())
    }

    /// Returns the variable that holds the token of [`token_to_read`](Self::token_to_read).
    pub fn variable_to_read(&self) -> Option<&'static str> {
        let changing = self.permits_changes().then_some(ADMIN_TOKEN);
        self.reading.as_ref().map(|_| READ_TOKEN).or(changing)
    }

    /// Returns the token that a client sends to change something.
    ///
    /// Without a token for changes, this is the token for reading: the gateway then reports what is
    /// missing.
    pub fn token_to_change(&self) -> Option<&[u8]> {
        self.first_for_changes().or(self.reading.as_deref())
    }

    fn first_for_changes(&self) -> Option<&[u8]> {
        self.changing.first().map(|token| &*token.secret)
    }
}

/// Parses `DRIP_ADMIN_TOKEN`, and returns the tokens that are accepted for changes.
///
/// The whole text of the variable, and the whole text of an entry, are accepted as well as the
/// secret in them. Whoever knows the text knows the secret, and the text may be a token of an
/// earlier version.
fn parse_changing(text: &[u8]) -> Result<Vec<AdminToken>, String> {
    let token = |secret: &[u8], name: Option<&str>| AdminToken {
        secret: secret.to_vec(),
        name: name.map(Arc::from),
    };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let entries = entries::read(text)?;
    // A text that does not look like a list is one token, which may contain commas or a colon.
    let is_one_token = match &*entries {
        [one] => !one.is_quoted && (one.name.is_none() || one.secret.len() < MIN_NAMED_SECRET),
        several => several.iter().all(Entry::is_bare),
    };
    if is_one_token {
        return Ok(vec![token(text, None)]);
    }
    check(&entries)?;
    let secrets = entries.iter().map(|entry| token(entry.secret, entry.name));
    let whole_entries = entries.iter().filter(|entry| entry.whole != text);
    let whole_entries = whole_entries.map(|entry| token(entry.whole, entry.name));
    let whole_text = [token(text, None)];
    Ok(secrets.chain(whole_entries).chain(whole_text).collect())
}

/// Checks the entries of a list. Messages name an entry by its number, because its text may be a
/// secret.
fn check(entries: &[Entry]) -> Result<(), String> {
    for (index, entry) in entries.iter().enumerate() {
        let number = index + 1;
        if entry.secret.is_empty() {
            return Err(format!(
                "entry {number} is empty; write each as NAME:SECRET, with a comma between two"
            ));
        }
        if entry.is_bare() {
            return Err(format!(
                "entry {number} has no name; write each as NAME:SECRET, with letters, digits, _ and - in the name, or put what is one token in double quotes"
            ));
        }
        if entry.name.is_some() && entry.secret.len() < MIN_NAMED_SECRET {
            return Err(format!(
                "the secret of entry {number} is too short; take at least {MIN_NAMED_SECRET} characters, or put what is one token in double quotes"
            ));
        }
        for (other_index, other) in entries[..index].iter().enumerate() {
            let same = match (entry.name, other.name) {
                _ if entry.secret == other.secret => "secret",
                (Some(name), Some(other)) if name == other => "name",
                _ => continue,
            };
            return Err(format!(
                "entries {} and {number} have the same {same}; give each its own",
                other_index + 1
            ));
        }
    }
    Ok(())
}
