//! `drip health`: checks whether a running gateway is ready, or with `--live` whether it is alive.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use config::{AdminAddress, AdminTokens};
use gateway::server::reachable;

use crate::admin_client::Client;
use crate::output::complain;

/// Admin address of a file that does not configure one.
const DEFAULT_ADMIN: &str = "127.0.0.1:9090";

/// Prints the response of the admin port to a health check.
///
/// Requests `/readyz`, and succeeds if the gateway is ready. With `checks_live` it requests
/// `/healthz`, and succeeds if the gateway is alive. The address is `address`, or else the admin
/// port that `file` configures.
pub fn health(address: Option<&AdminAddress>, file: &Path, checks_live: bool) -> ExitCode {
    let address = address.map_or_else(|| configured_address(file), |address| Ok(address.clone()));
    match address.and_then(|address| request_health(&address, checks_live)) {
        Ok((is_healthy, text)) => {
            // The exit code reports the result, too.
            let _closed = io::stdout().write_all(text.as_bytes());
            ExitCode::from(u8::from(!is_healthy))
        }
        Err(error) => {
            complain(format_args!("drip: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the address of the admin port that a file configures.
fn configured_address(file: &Path) -> io::Result<AdminAddress> {
    let text = config::read(file).map_err(io::Error::other)?;
    let admin = match config::parse(&text, file, config::has_admin_token()) {
        Ok(settings) => settings.server.admin,
        // A running gateway is not unhealthy because its file was saved with an error. If the
        // address cannot be read from it, the default applies.
        Err(_) => config::admin_of_broken(&text, file).unwrap_or(DEFAULT_ADMIN.parse().ok()),
    };
    let Some(admin) = admin else {
        return Err(io::Error::other(format!(
            "{}: server.admin is \"off\", so the health cannot be read; set an address, such as admin = \"{DEFAULT_ADMIN}\"",
            file.display()
        )));
    };
    let address = reachable(admin).to_string();
    address.parse().map_err(io::Error::other)
}

/// Requests a health check. Returns whether the gateway is healthy, and the text of the response.
fn request_health(address: &AdminAddress, checks_live: bool) -> io::Result<(bool, String)> {
    let error_at_address = |what: String| io::Error::other(format!("{address}: {what}"));
    let path = if checks_live { "/healthz" } else { "/readyz" };
    let client = Client::new(address.clone(), AdminTokens::default());
    let answer = actix_rt::System::new().block_on(client.fetch(path));
    let (status, body) = answer.map_err(|error| error_at_address(error.to_string()))?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let is_healthy = match (status.as_u16(), body.lines().next()) {
        (200, Some("ok")) if checks_live => true,
        (200, Some("ready")) if !checks_live => true,
        (503, Some("not ready")) if !checks_live => false,
        _ => {
            let what = "this is not the admin port of a gateway";
            return Err(error_at_address(what.to_owned()));
        }
    };
    Ok((is_healthy, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_checked_over_loopback() {
        for (listens, address) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9", "[::1]:9"),
            ("10.0.0.1:9090", "10.0.0.1:9090"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), address);
        }
    }
}
