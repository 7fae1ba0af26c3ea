//! What `drip check` says.

use std::path::Path;

use super::rule::{Check, has};
use crate::support::{Gateway, drip};

impl Check {
    /// Fails if `drip check` says something else of the file of a gateway.
    pub fn hold_for(&self, gateway: &Gateway) {
        self.hold_of(&gateway.site.file());
    }

    /// Fails if `drip check` says something else of this file.
    pub fn hold_of(&self, file: &Path) {
        let mut command = drip();
        let output = command
            .args(["check", "-c"])
            .arg(file)
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(self.status), "{text}");
        let is_line = |line: &str| self.parts.iter().all(|part| has(line, part));
        let is_there = self.parts.is_empty() || text.lines().any(is_line);
        assert!(is_there, "no line has {:?}: {text}", self.parts);
    }
}
