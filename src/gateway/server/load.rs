//! Reads and checks the configuration file, its certificates and its access log, before the start.

use std::path::{Path, PathBuf};
use std::{fs, io};

use config::tls::{Validity, unix_now};
use config::{self, Access, FileField, LoadError, Problems, Server, Settings};

use super::descriptors;
use crate::http::downstream::{Certificates, check_client_trust};

/// Configuration that the process starts with.
pub struct Loaded {
    /// Absolute path of the file.
    pub file: PathBuf,
    /// Text of the file, which the watcher starts from.
    pub text: String,
    /// Settings of the file.
    pub settings: Settings,
}

/// Problems at fields of the file that parsing cannot find.
#[derive(Default)]
struct Found {
    /// Problems with which the gateway cannot start.
    errors: Vec<(FileField, String)>,
    warnings: Vec<(FileField, String)>,
}

impl Found {
    /// Adds a problem at `field`: an error, or else a warning.
    fn add(&mut self, is_error: bool, field: FileField, text: String) {
        let problems = if is_error {
            &mut self.errors
        } else {
            &mut self.warnings
        };
        problems.push((field, text));
    }

    /// Adds a warning at `field` if a certificate is not valid, or expires soon.
    fn warn_of_expiry(&mut self, validity: Option<Validity>, subject: &str, field: FileField) {
        let warning = validity.and_then(|validity| validity.warning(unix_now()));
        let warning = warning.map(|warning| (field, format!("{subject} {warning}")));
        self.warnings.extend(warning);
    }
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
    let mut found = Found::default();
    check_certificates(&settings.server, is_start, &mut found);
    check_client_authorities(&settings.server, &mut found);
    if let Access::File(log) = &settings.log.access
        && let Err(why) = check_log_path(log)
    {
        found.add(is_start, FileField::AccessLog, why.to_owned());
    }
    // A start does not need this warning: it raises its limit, and warns if less than half fit.
    let max_connections = settings.server.max_connections.get();
    if !is_start && let Some(why) = descriptors::why_too_many(max_connections) {
        found.add(false, FileField::MaxConnections, why);
    }
    if !found.errors.is_empty() {
        let problems = config::at_fields(&text, file, &found.errors);
        return Err(Problems::new(file, problems).into());
    }
    let warnings = config::at_fields(&text, file, &found.warnings);
    settings.warnings.extend(warnings);
    Ok(Loaded {
        file: file.to_owned(),
        text,
        settings,
    })
}

/// Checks the certificates of `[server.tls]` and their keys.
fn check_certificates(server: &Server, is_start: bool, found: &mut Found) {
    let pairs = server.tls.as_ref().map_or(&[][..], |tls| &tls.pairs);
    for (index, pair) in pairs.iter().enumerate() {
        match Certificates::load(std::slice::from_ref(pair)) {
            Ok(certificates) => {
                let validity = certificates.first_validity();
                found.warn_of_expiry(validity, "the certificate", FileField::Cert(index));
            }
            Err(error) => {
                // The first file of a pair is the certificate, the second one its key.
                let field = if error.is_second {
                    FileField::Key(index)
                } else {
                    FileField::Cert(index)
                };
                let is_error = is_start || !error.is_unmounted;
                let text = if is_error {
                    error.to_string()
                } else {
                    format!("{error}; its folder is not on this machine, and a start needs it")
                };
                found.add(is_error, field, text);
            }
        }
    }
}

/// Checks the authorities of clients, of `[server.tls]` and of each address.
fn check_client_authorities(server: &Server, found: &mut Found) {
    let shared = server.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let of_addresses = server.listen.iter().enumerate();
    let of_addresses = of_addresses.filter_map(|(index, listen)| {
        let own = listen.client_auth.as_ref();
        Some((Some(index), own.filter(|_| own != shared)?))
    });
    // Index in `listen`; `None`: the authorities of `[server.tls]`.
    let of_server = shared.map(|auth| (None, auth)).into_iter();
    for (listen_index, auth) in of_server.chain(of_addresses) {
        match check_client_trust(auth) {
            Ok(validity) => {
                let field = FileField::ClientCa(listen_index);
                found.warn_of_expiry(validity, "an authority of clients", field);
            }
            Err(error) => {
                // The first file has the authorities, the second one the revoked certificates.
                let field = if error.is_second {
                    FileField::ClientCrl(listen_index)
                } else {
                    FileField::ClientCa(listen_index)
                };
                found.add(true, field, error.to_string());
            }
        }
    }
}

/// Checks whether a log can be written at `path`.
///
/// A folder that this user may not look into counts as possible: the service may run as another.
fn check_log_path(path: &Path) -> Result<(), &'static str> {
    if path.is_dir() {
        return Err("this is a folder; name a file in it");
    }
    let folder = path.parent().unwrap_or(path);
    match fs::metadata(folder).map_err(|error| error.kind()) {
        Ok(folder) if folder.is_dir() => Ok(()),
        Err(io::ErrorKind::NotFound) => {
            Err("the folder of this file does not exist; make it, or name another file")
        }
        Ok(_) | Err(io::ErrorKind::NotADirectory) => {
            Err("the parent folder in this path is a file; name another path")
        }
        Err(_) => Ok(()),
    }
}
