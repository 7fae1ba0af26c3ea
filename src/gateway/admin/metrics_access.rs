//! Whether `/metrics` needs a token now.

use std::sync::atomic::{AtomicBool, Ordering};

use config::MetricsAccess;

/// The field `metrics` of the last settings in force: it applies during a start and a stop, too,
/// when there are none.
#[derive(Debug)]
pub struct CurrentMetricsAccess {
    needs_token: AtomicBool,
}

impl CurrentMetricsAccess {
    /// What the file says at the start.
    pub fn new(access: MetricsAccess) -> Self {
        Self {
            needs_token: AtomicBool::new(access == MetricsAccess::Token),
        }
    }

    pub(super) fn follow(&self, access: MetricsAccess) {
        let needs_token = access == MetricsAccess::Token;
        self.needs_token.store(needs_token, Ordering::Relaxed);
    }

    pub(super) fn needs_token(&self) -> bool {
        self.needs_token.load(Ordering::Relaxed)
    }
}
