use std::path::Path;

use super::run;
use crate::config::{self, CertPair, LoadError, Settings, Tls};
use crate::http::downstream::{CertificateError, Certificates};

/// Reads a file as [`run::load`] does, and also the certificates that it names.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or if it or the files in `[server.tls]` are not
/// valid.
pub(super) fn load(file: &Path) -> Result<(String, Settings), LoadError> {
    let (text, settings) = run::load(file)?;
    let pairs = settings
        .server
        .tls
        .as_ref()
        .map_or(&[][..], |tls| &tls.pairs);
    let problems = pairs.iter().enumerate().filter_map(|(index, pair)| {
        let alone = Tls {
            pairs: vec![pair.clone()],
        };
        let error = Certificates::load(&alone).err()?;
        Some((index, field(&error, pair), error.to_string()))
    });
    let problems = problems.collect::<Vec<_>>();
    if problems.is_empty() {
        return Ok((text, settings));
    }
    Err(config::unusable_certificates(&text, file, &problems).into())
}

/// The field that names the file at fault.
fn field(error: &CertificateError, pair: &CertPair) -> &'static str {
    let of_cert = match error {
        CertificateError::Unreadable { file, .. } => *file == pair.cert.display().to_string(),
        // Both fields may name the same file.
        CertificateError::NotPem { what, .. } => what.contains("certificate"),
        CertificateError::NoPair { .. } => false,
    };
    if of_cert { "cert" } else { "key" }
}
