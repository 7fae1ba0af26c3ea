use crate::http::gateway::Gateway;

/// Opens the access log of `gateway` again, so that a renamed file is followed by a new one.
///
/// If that fails, the lines go where they went before.
pub(super) fn reopen(gateway: &Gateway) {
    let Some(log) = gateway.access_log() else {
        return;
    };
    match log.reopen(gateway.settings()) {
        Ok(true) => tracing::info!("the access log is opened again"),
        Ok(false) => {}
        Err(error) => tracing::error!(%error, "the access log cannot be opened again"),
    }
}

/// Says that a signal without a meaning came.
pub(super) fn ignored_signal() {
    tracing::info!("SIGUSR2 has no effect");
}
