//! Until when certificates are valid, and in which words that is said.
//!
//! The process has one list of the certificates that its file names for TLS with clients: `http::downstream` fills it;
//! the headline, the metrics and the log read it. The certificates of origins are in `origin`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::time::clock;
use crate::tls::Validity;

/// A day in seconds.
pub const DAY: i64 = 86_400;
/// A certificate that expires within this time is worth a warning.
const SOON: i64 = 14 * DAY;

/// Whose certificate it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CertificateOf {
    /// The gateway's own, for clients.
    #[default]
    Server,
    /// An authority in `client_ca`.
    ClientCa,
    /// A server of an origin.
    Origin,
}

impl CertificateOf {
    /// The value of the label `of`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::ClientCa => "client_ca",
            Self::Origin => "origin",
        }
    }
}

/// A file of certificates that is in force.
#[derive(Clone, Debug)]
pub struct KnownCertificate {
    /// Whose it is.
    pub of: CertificateOf,
    /// The file.
    pub name: String,
    /// When it is valid; of several in one file, of the one that expires first.
    pub validity: Validity,
    /// Why the changed file is not in force.
    pub problem: Option<String>,
    /// When the log last said that it expires soon or has expired, and whether it had.
    logged: Option<(i64, bool)>,
}

static KNOWN: Mutex<Vec<KnownCertificate>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<KnownCertificate>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes the certificate that is in force, and that its file has no problem.
///
/// The file is checked before the gateway starts, which logs a warning. So the first certificate of a file is logged a
/// day later, a changed one at once.
pub fn note_certificate(of: CertificateOf, name: &str, validity: Validity) {
    let mut all = known();
    if let Some(it) = all.iter_mut().find(|it| it.of == of && it.name == name) {
        it.problem = None;
        if it.validity != validity {
            (it.validity, it.logged) = (validity, None);
        }
    } else {
        let now = unix_now();
        all.push(KnownCertificate {
            of,
            name: name.to_owned(),
            validity,
            problem: None,
            logged: Some((now, validity.to < now)),
        });
    }
}

/// Notes why a changed file is not in force, or that it has no problem.
pub fn note_problem(of: CertificateOf, name: &str, problem: Option<&str>) {
    let mut all = known();
    if let Some(it) = all.iter_mut().find(|it| it.of == of && it.name == name) {
        it.problem = problem.map(str::to_owned);
    }
}

/// The certificates in force, in the order in which they came.
#[must_use]
pub fn known_certificates() -> Vec<KnownCertificate> {
    known().clone()
}

/// Logs which certificates expire soon or have expired: each once a day, and at once when it changes.
pub fn log_expiring() {
    let now = unix_now();
    for it in known().iter_mut() {
        let Some(words) = expiry(it.validity.to, now) else {
            continue;
        };
        let has_expired = it.validity.to < now;
        let is_known = |(at, had): (i64, bool)| now - at < DAY && had == has_expired;
        if it.logged.is_some_and(is_known) {
            continue;
        }
        it.logged = Some((now, has_expired));
        let (of, file) = (it.of.label(), it.name.as_str());
        if has_expired {
            tracing::error!(of, file, "the certificate {words}; renew it");
        } else {
            tracing::warn!(of, file, "the certificate {words}; renew it");
        }
    }
}

/// Says when a certificate expires or has expired; `None` if that is not soon. Both are in Unix time.
///
/// `expires in 9 days, on 2026-12-08`, or `expired on 2020-01-02`.
#[must_use]
pub fn expiry(at: i64, now: i64) -> Option<String> {
    let left = at.saturating_sub(now);
    if left >= SOON {
        return None;
    }
    let date = date(at);
    Some(match left / DAY {
        _ if left < 0 => format!("expired on {date}"),
        0 => format!("expires within a day, on {date}"),
        1 => format!("expires in 1 day, on {date}"),
        days => format!("expires in {days} days, on {date}"),
    })
}

/// Returns whether a warning that a certificate expires is due, or will be within a day.
#[must_use]
pub fn is_nearly_soon(at: i64, now: i64) -> bool {
    at.saturating_sub(now) < SOON + DAY
}

/// The day of a Unix time, in UTC: `2026-12-08`.
#[must_use]
pub fn date(at: i64) -> String {
    let at = Timestamp::from_second(at).unwrap_or(Timestamp::MAX);
    at.strftime("%Y-%m-%d").to_string()
}

/// The time by the clock, in Unix time.
#[must_use]
pub fn unix_now() -> i64 {
    let seconds = clock::wall().as_nanos() / 1_000_000_000;
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29 00:00.
    const NOW: i64 = 1_795_910_400;

    #[test]
    fn an_end_is_said_from_two_weeks_before_it_on() {
        let words = |left| expiry(NOW + left, NOW).unwrap_or_default();
        assert_eq!(words(SOON), "");
        assert_eq!(words(SOON - 1), "expires in 13 days, on 2026-12-12");
        assert_eq!(words(9 * DAY + 1), "expires in 9 days, on 2026-12-08");
        assert_eq!(words(DAY), "expires in 1 day, on 2026-11-30");
        assert_eq!(words(0), "expires within a day, on 2026-11-29");
        assert_eq!(words(-1), "expired on 2026-11-28");
        assert_eq!(words(i64::MIN / 2).split(' ').next(), Some("expired"));
    }

    #[test]
    fn a_problem_is_known_until_the_file_is_in_force() {
        let name = "a file of this test alone";
        let of_test = || {
            let all = known_certificates();
            all.into_iter().find(|it| it.name == name)
        };
        let validity = |to| Validity { from: 0, to };
        note_problem(CertificateOf::Server, name, Some("unknown"));
        assert!(of_test().is_none());
        note_certificate(CertificateOf::Server, name, validity(1));
        note_problem(CertificateOf::Server, name, Some("not its key"));
        let problem = of_test().and_then(|it| it.problem);
        assert_eq!(problem.as_deref(), Some("not its key"));
        note_certificate(CertificateOf::Server, name, validity(2));
        let known = of_test().expect("it is known");
        assert_eq!((known.problem, known.validity.to), (None, 2));
        assert_eq!(known.logged, None);
        log_expiring();
        assert!(of_test().is_some_and(|it| it.logged.is_some()));
    }
}
