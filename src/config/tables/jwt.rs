//! `[jwt.NAME]`: how tokens of clients are verified (JSON Web Tokens, RFC 7519).
//!
//! A key template such as `$jwt_auth_sub` reads the claim `sub` of a token that `[jwt.auth]` has
//! verified. In `table!`, an entry is a field of the file: its type, its reader with the default,
//! when a change takes effect, and its meaning (see `table_settings`, and `kinds` for readers).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::names::{join_names, read_named};
use super::prelude::*;
use crate::jwt::{KeySet, TokenRequirements, Verifier};
use crate::report::Shared;
use crate::{FileKind, KeyTemplate, Variable};

table! {
    /// `[jwt.NAME]`: verification of clients' tokens, for the variables `$jwt_NAME_CLAIM`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Jwt {
        /// Letters and digits.
        name: String;
        /// Absolute path.
        jwks: PathBuf = JWKS.required("\"keys.json\""), NextRequest,
            "A file with the keys that sign the tokens: a JSON Web Key Set (RFC 7517).";
        audience: Vec<String> = NAMES.with_default_from(Vec::new), NextRequest,
            "The aud of tokens is this, or one of this list. Default: it does not matter.";
        issuer: Vec<String> = NAMES.with_default_from(Vec::new), NextRequest,
            "The iss of tokens is this, or one of this list. Default: it does not matter.";
        leeway: Duration = duration::<0, HOUR>().with_default("\"60s\""), NextRequest,
            "How far the clock of who makes tokens may be off, up to 1h.";
        /// Verifier of tokens with these values.
        verifier: Arc<Verifier>;
    }
}

/// Maximum size of a key set, in bytes. Public key sets have a few KB.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// Name of a file with keys.
const JWKS: Kind<PathBuf> = Kind {
    read: |node| {
        let what = "the name of a file such as \"keys.json\"";
        values::named_file(node, FileKind::KeySet, what)
    },
    ..FILE_NAME
};

/// One name, or a list of names.
const NAMES: Kind<Vec<String>> = Kind {
    form: ONE_OR_LIST_FORM,
    read: |node| {
        const EXAMPLE: &str = "[\"https://auth.example.com\"]";
        let one = |item: Node| {
            let what = "a text that is not empty";
            values::text_if(item, what, |text| !text.is_empty()).map(str::to_owned)
        };
        values::one_or_list(node, EXAMPLE, one)
    },
    show: |names| show_one_or_texts(names),
};

/// Reads the entries of `[jwt]` and their keys. [`with_verifiers`] completes them.
pub(crate) fn read(entries: &[Node]) -> Vec<Option<(Jwt, KeySet)>> {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
    for entry in entries {
        if !is_name(entry.name) {
            entry.report_as_is("the name of a [jwt] is made of letters and digits, because an _ ends it in $jwt_NAME_CLAIM");
        }
        let mut claims = entry.report.shared.claims.borrow_mut();
        claims.insert(entry.name.to_owned(), BTreeSet::new());
    }
    read_named("jwt", Jwt::TABLE, entries, |mut fields, name| {
        let jwt = Jwt::read(&mut fields);
        let keys = fields.valid_value("jwks");
        let keys = keys.and_then(|node| read_keys(node, &jwt.jwks));
        let is_right = fields.finish();
        Some((Jwt { name, ..jwt }, keys?)).filter(|_| is_right)
    })
}

/// Reads the file of a key set. `node`: the value that names it.
fn read_keys(node: Node, path: &Path) -> Option<KeySet> {
    let text = values::content(node, path, MAX_FILE_SIZE, "; name a key set of at most 1MB")?;
    let report = |error| node.report_as_is(&format!("{}: {error}", node.show_path(path)));
    KeySet::parse(&text).map_err(report).ok()
}

/// Makes the verifiers, which read the recorded claims. Returns `None` if an entry is wrong.
///
/// Must be called once all templates have been read.
pub(crate) fn with_verifiers(
    entries: Vec<Option<(Jwt, KeySet)>>,
    shared: &Shared,
) -> Option<Arc<[Jwt]>> {
    let mut all_claims = shared.claims.borrow_mut();
    let mut all = Vec::new();
    for entry in entries {
        let (jwt, keys) = entry?;
        let expected = TokenRequirements {
            audience: jwt.audience.clone(),
            issuer: jwt.issuer.clone(),
            leeway: jwt.leeway,
        };
        let claims = all_claims.remove(&jwt.name).unwrap_or_default();
        let verifier = Arc::new(Verifier::new(keys, expected, claims.into_iter().collect()));
        all.push(Jwt { verifier, ..jwt });
    }
    Some(all.into())
}

/// Records the claims that a template reads.
///
/// Reports each variable whose `[jwt.NAME]` does not exist. Returns whether all of them exist.
pub(super) fn note_claims(node: Node, template: &KeyTemplate) -> bool {
    let mut has_all = true;
    let mut claims = node.report.shared.claims.borrow_mut();
    for variable in template.variables() {
        let Variable::Jwt { name, claim } = variable else {
            continue;
        };
        if let Some(claims_read) = claims.get_mut(name) {
            claims_read.insert(claim.clone());
        } else {
            let known: Vec<&str> = claims.keys().map(String::as_str).collect();
            let hint = match known[..] {
                [] => format!("the file has none; add [jwt.{name}] with jwks = \"keys.json\""),
                _ => format!("the file has {}", join_names(&known)),
            };
            node.report_missing(&format!(
                "$jwt_{name}_{claim} needs [jwt.{name}], which does not exist; {hint}"
            ));
            has_all = false;
        }
    }
    has_all
}
