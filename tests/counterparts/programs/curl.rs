//! curl as a client of drip.

use std::process::{Command, Stdio};

/// Runs curl with these arguments, including the URL. It accepts any certificate.
///
/// # Errors
///
/// Returns curl's exit status if it failed: its manual has a list.
pub fn curl(arguments: &[&str]) -> Result<String, Option<i32>> {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-k", "--max-time", "10"]).args(arguments);
    let output = curl.env("NO_PROXY", "*").stdin(Stdio::null()).output();
    let output = output.expect("curl, which tests/run.sh installs");
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).expect("text"))
    } else {
        Err(output.status.code())
    }
}
