//! Splits the text of `DRIP_ADMIN_TOKEN` at its commas into entries.
//!
//! An entry is `NAME:SECRET`, `"SECRET"` or `NAME:"SECRET"`. A comma in quotes belongs to the
//! secret. Any other text is an entry, too: the parent module decides what it means.

/// One entry, without the blanks around it.
pub(super) struct Entry<'t> {
    /// Text of the entry, with its name and its quotes.
    pub(super) whole: &'t [u8],
    /// Text before the first colon, if it is a valid name.
    pub(super) name: Option<&'t str>,
    /// Secret without the quotes.
    pub(super) secret: &'t [u8],
    /// Whether the secret is in double quotes.
    pub(super) is_quoted: bool,
}

impl Entry<'_> {
    /// Returns whether the entry has neither a name nor quotes.
    pub(super) fn is_bare(&self) -> bool {
        self.name.is_none() && !self.is_quoted
    }
}

/// Reads the entries of a text. Quotes have an effect only at the start of an entry or a secret.
///
/// # Errors
///
/// Returns an error without the secret if a quote has no end, or has text behind it.
pub(super) fn read(text: &[u8]) -> Result<Vec<Entry<'_>>, String> {
    let mut entries = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.trim_ascii_start();
        let named = split_name(start);
        let (name, value) = named.map_or((None, start), |(name, value)| (Some(name), value));
        let number = entries.len() + 1;
        // `after`: the text from the comma behind the entry on. It is empty after the last entry.
        let (secret, is_quoted, after) = if let Some(quoted) = value.strip_prefix(b"\"") {
            let end = memchr::memchr(b'"', quoted);
            let end =
                end.ok_or_else(|| format!("the quote of entry {number} has no end; add one"))?;
            (&quoted[..end], true, quoted[end + 1..].trim_ascii_start())
        } else {
            let end = memchr::memchr(b',', value).unwrap_or(value.len());
            (value[..end].trim_ascii_end(), false, &value[end..])
        };
        let whole = start[..start.len() - after.len()].trim_ascii_end();
        entries.push(Entry {
            whole,
            name,
            secret: secret.trim_ascii(),
            is_quoted,
        });
        match after.split_first() {
            None => return Ok(entries),
            Some((b',', next)) => rest = next,
            Some(_) => {
                return Err(format!(
                    "only a comma may follow the quotes of entry {number}; put the whole secret in quotes"
                ));
            }
        }
    }
}

/// Splits an entry at its first colon into a name and the text behind it.
///
/// `None`: the text before the colon is not a valid name, or there is no colon.
fn split_name(entry: &[u8]) -> Option<(&str, &[u8])> {
    let colon = memchr::memchr(b':', entry)?;
    let name = str::from_utf8(&entry[..colon]).ok()?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = !name.is_empty() && name.chars().all(is_part);
    is_name.then(|| (name, entry[colon + 1..].trim_ascii_start()))
}
