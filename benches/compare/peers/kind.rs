//! The measured programs: their locations and their features.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;

use crate::support::process::find;

/// A program that may be installed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The drip that cargo built
    Drip,
    /// The drip that the variable DRIP names
    Before,
    Nginx,
    Haproxy,
    /// The envoy of the PATH, or the one that the variable ENVOY names
    Envoy,
    /// The floor that the variable LEAN names: the least that a proxy does
    Lean,
}

impl Kind {
    pub const ALL: [Self; 6] = [
        Self::Drip,
        Self::Before,
        Self::Nginx,
        Self::Haproxy,
        Self::Envoy,
        Self::Lean,
    ];

    pub fn program(self) -> Option<PathBuf> {
        let named = self.variable().and_then(named);
        match self {
            Self::Drip => Some(env!("CARGO_BIN_EXE_drip").into()),
            Self::Before | Self::Lean => named,
            Self::Nginx => find("nginx"),
            Self::Haproxy => find("haproxy"),
            Self::Envoy => named.or_else(|| find("envoy")),
        }
    }

    /// Returns the environment variable that names its program, if there is one.
    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Before => Some("DRIP"),
            Self::Envoy => Some("ENVOY"),
            Self::Lean => Some("LEAN"),
            Self::Drip | Self::Nginx | Self::Haproxy => None,
        }
    }

    /// Returns the problem with the variable that names its program.
    pub fn misnamed(self) -> Option<String> {
        let variable = self.variable()?;
        let value = env::var_os(variable)?;
        let found = named(variable).is_some();
        (!found).then(|| format!("{variable}={}: no such file", value.display()))
    }

    /// Returns advice for a program that is not installed.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Drip => "cargo builds it",
            Self::Before => "set DRIP to its binary",
            Self::Nginx => "install nginx",
            Self::Haproxy => "install haproxy",
            Self::Envoy => "set ENVOY to its binary",
            Self::Lean => "set LEAN to its binary",
        }
    }

    /// Returns whether it is measured only on request.
    pub fn is_extra(self) -> bool {
        matches!(self, Self::Before | Self::Lean)
    }

    /// Returns whether it is drip, of this build or another.
    pub fn is_drip(self) -> bool {
        matches!(self, Self::Drip | Self::Before)
    }

    /// Returns whether it has a bucket for each key.
    ///
    /// envoy's `local_ratelimit` has one for all keys; lean has an actor for each key.
    pub fn counts_by_key(self) -> bool {
        self != Self::Envoy
    }

    /// Returns whether it can delay requests.
    pub fn lets_wait(self) -> bool {
        self.is_drip() || self == Self::Nginx
    }

    /// Returns whether it is measured with TLS.
    pub fn speaks_tls(self) -> bool {
        self.is_drip() || self == Self::Nginx
    }

    /// Returns whether the memory of its waiters can be measured. lean keeps all of them for ever.
    pub fn holds_requests(self) -> bool {
        self.lets_wait() || self == Self::Lean
    }

    /// Returns the version that the program reports.
    pub fn version(self) -> Option<String> {
        let asked = match self {
            Self::Drip | Self::Before | Self::Envoy => "--version",
            Self::Nginx | Self::Haproxy => "-v",
            Self::Lean => return None,
        };
        let version_text = Command::new(self.program()?).arg(asked).output().ok()?;
        let text = [version_text.stdout, version_text.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let numbers = text.split(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
        let version = numbers
            .into_iter()
            .find(|word| word.matches('.').count() >= 2)?;
        Some(format!("{self} {version}"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drip => "drip",
            Self::Before => "drip before",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Lean => "lean",
        })
    }
}

/// Returns the absolute path of the file that an environment variable names.
///
/// The path must be absolute because a peer runs in its own folder.
fn named(variable: &str) -> Option<PathBuf> {
    let file = PathBuf::from(env::var_os(variable)?);
    file.is_file().then(|| file.canonicalize().ok()).flatten()
}
