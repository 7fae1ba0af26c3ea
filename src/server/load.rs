use std::path::{Path, PathBuf};

use crate::config::{self, CertPair, LoadError, Settings, Tls};
use crate::http::downstream::{CertificateError, Certificates};

/// What the process starts with.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) file: PathBuf,
    /// The text of the file, which the watcher starts from.
    pub(crate) text: String,
    /// Its settings.
    pub(crate) settings: Settings,
}

/// Reads the file and the certificates that it names.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or if it or the files in `[server.tls]` are not
/// valid.
pub(crate) fn load(file: &Path) -> Result<Loaded, LoadError> {
    let text = config::read(file)?;
    let settings = config::parse(&text, file, config::has_admin_token())?;
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
        return Ok(Loaded {
            file: file.to_owned(),
            text,
            settings,
        });
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
