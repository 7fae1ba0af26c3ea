//! Reads and checks the configuration file with its certificates and its access log.

use std::path::{Path, PathBuf};
use std::{fs, io};

use config::tls::{Validity, unix_now};
use config::{self, Access, ClientAuth, FileField, LoadError, Problems, Server, Settings};

use super::descriptors;
use crate::http::downstream::{Certificates, TlsFileError, check_client_trust};

/// Configuration that the process starts with.
pub struct Loaded {
    /// Absolute path of the file.
    pub file: PathBuf,
    /// Text of the file, which the watcher starts from.
    pub text: String,
    /// Settings of the file.
    pub settings: Settings,
}

/// Reads the file, and checks the certificates and the access log that it names.
///
/// Without `is_start`, a missing folder of the access log or of a certificate is only a warning:
/// the file may be checked on another machine.
///
/// # Errors
///
/// The file cannot be read, the file or its certificates are not valid, or a file that a start
/// needs is missing.
pub fn load(file: &Path, is_start: bool) -> Result<Loaded, LoadError> {
    let text = config::read(file)?;
    let mut settings = config::parse(&text, file, config::has_admin_token())?;
    let tls = settings.server.tls.as_ref();
    let pairs = tls.map_or(&[][..], |tls| &tls.pairs);
    let (mut unusable, mut doubtful) = (Vec::new(), Vec::new());
    for (index, pair) in pairs.iter().enumerate() {
        match Certificates::load(std::slice::from_ref(pair)) {
            Err(error) if !is_start && error.is_unmounted => {
                let what =
                    format!("{error}; its folder is not on this machine, and a start needs it");
                doubtful.push((field(&error, index), what));
            }
            Err(error) => unusable.push((field(&error, index), error.to_string())),
            Ok(certificates) => {
                let validity = certificates.first_validity();
                let warning = expiry_warning(validity, "the certificate");
                doubtful.extend(warning.map(|what| (FileField::Cert(index), what)));
            }
        }
    }
    for (field, auth) in client_auths(&settings.server) {
        match check_client_trust(auth) {
            Ok(validity) => {
                let warning = expiry_warning(validity, "an authority of clients");
                doubtful.extend(warning.map(|what| (FileField::ClientCa(field), what)));
            }
            Err(error) => {
                let field = if error.is_second {
                    FileField::ClientCrl(field)
                } else {
                    FileField::ClientCa(field)
                };
                unusable.push((field, error.to_string()));
            }
        }
    }
    if let Access::File(log) = &settings.log.access
        && let Err(why) = check_log_path(log)
    {
        let found = if is_start {
            &mut unusable
        } else {
            &mut doubtful
        };
        found.push((FileField::AccessLog, why.to_owned()));
    }
    // A start raises its limit, and logs the number of clients that fit.
    if !is_start && let Some(why) = descriptors::too_many(settings.server.max_connections.get()) {
        doubtful.push((FileField::MaxConnections, why));
    }
    if !unusable.is_empty() {
        let problems = config::at_fields(&text, file, &unusable);
        return Err(Problems::new(file, problems).into());
    }
    let warnings = config::at_fields(&text, file, &doubtful);
    settings.warnings.extend(warnings);
    Ok(Loaded {
        file: file.to_owned(),
        text,
        settings,
    })
}

/// Settings for client certificates, with the index in `listen` of entries with their own.
///
/// Without an index: the settings of `[server.tls]`.
fn client_auths(server: &Server) -> impl Iterator<Item = (Option<usize>, &ClientAuth)> {
    let usual = server.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let entries = server.listen.iter().enumerate();
    let own = entries.filter_map(move |(nth, listen)| {
        let auth = listen.client_auth.as_ref()?;
        (Some(auth) != usual).then_some((Some(nth), auth))
    });
    usual.map(|auth| (None, auth)).into_iter().chain(own)
}

/// Warning about a certificate that is not valid for long.
fn expiry_warning(validity: Option<Validity>, of: &str) -> Option<String> {
    let warning = validity?.warning(unix_now())?;
    Some(format!("{of} {warning}"))
}

/// Field that names the wrong file.
fn field(error: &TlsFileError, index: usize) -> FileField {
    if error.is_second {
        FileField::Key(index)
    } else {
        FileField::Cert(index)
    }
}

/// Returns whether a log can be written at `path`.
///
/// If only the service's user can know, it counts as possible.
fn check_log_path(path: &Path) -> Result<(), &'static str> {
    if path.is_dir() {
        return Err("this is a folder; name a file in it");
    }
    let folder = path.parent().unwrap_or(path);
    match fs::metadata(folder).map_err(|error| error.kind()) {
        Err(io::ErrorKind::NotFound) => {
            Err("the folder of this file does not exist; make it, or name another file")
        }
        Ok(folder) if folder.is_dir() => Ok(()),
        Ok(_) | Err(io::ErrorKind::NotADirectory) => {
            Err("the parent folder in this path is a file; name another path")
        }
        Err(_) => Ok(()),
    }
}
