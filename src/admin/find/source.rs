//! Figures of the origin's own, read over HTTP in Prometheus' text format.

use std::str::FromStr;
use std::time::Duration;

use tokio::time::timeout;

use crate::limit::find::FigureBound;

/// Timeout for one reading.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Largest answer that is read, in bytes. Those of `node_exporter` have about 100 KB.
const MAX_SIZE: usize = 4 << 20;

/// Longest address.
const MAX_URL: usize = 2000;

/// Where a figure is read, and what its bound is: `http://127.0.0.1:9100/metrics node_load1 < 8`.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::admin) struct FigureSource {
    url: String,
    pub(in crate::admin) bound: FigureBound,
}

impl FromStr for FigureSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text is in no error then: errors are shown and kept.
        if has_user(text) {
            return Err(
                "its address has a user or a password, which the gateway does not send: leave \
                 them out; the figures must be readable without them"
                    .to_owned(),
            );
        }
        let example = "such as \"http://127.0.0.1:9100/metrics node_load1 < 8\"";
        let parts = text.trim().split_once(char::is_whitespace);
        let (url, bound) = parts.ok_or_else(|| {
            format!("{text:?} must be an address, and a figure with its bound, {example}")
        })?;
        if !url.starts_with("http://") || url.len() > MAX_URL {
            return Err(format!(
                "{text:?}: its address must begin with http://, {example}"
            ));
        }
        let bound = bound.trim().parse();
        Ok(Self {
            url: url.to_owned(),
            bound: bound.map_err(|error: String| format!("{text:?}: {error}"))?,
        })
    }
}

/// Whether the address at its begin has a user before the host: `http://user:password@host/`.
fn has_user(text: &str) -> bool {
    let address = text.split_whitespace().next().unwrap_or_default();
    let after_scheme = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = after_scheme.split(['/', '?', '#']).next();
    host.is_some_and(|host| host.contains('@'))
}

impl FigureSource {
    /// Reads the figure, within two seconds.
    ///
    /// # Errors
    ///
    /// Says in one line why it cannot be read. Nothing of the answer is in it.
    pub(in crate::admin) async fn read(&self) -> Result<f64, String> {
        let read = timeout(TIMEOUT, self.ask()).await;
        let text = read.unwrap_or_else(|_| Err("no answer within 2 s".to_owned()));
        let text = text.map_err(|error| format!("{}: {error}", self.url))?;
        self.bound
            .worst_of(&text)
            .ok_or_else(|| format!("{} has no figure {}", self.url, self.bound.figure_name()))
    }

    async fn ask(&self) -> Result<String, String> {
        // A redirect could lead anywhere.
        let client = awc::Client::builder().disable_redirects().finish();
        let answer = client.get(&self.url).send().await;
        let mut answer = answer.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("it answers {}", answer.status()));
        }
        let body = answer.body().limit(MAX_SIZE).await;
        let body = body.map_err(|error| error.to_string())?;
        String::from_utf8(body.to_vec()).map_err(|_| "its answer is no text".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_before_the_figure() {
        let source: FigureSource = "http://a:9100/metrics  load{cpu=\"0\"} < 8"
            .parse()
            .unwrap();
        assert_eq!(source.url, "http://a:9100/metrics");
        assert_eq!(source.bound.to_string(), "load{cpu=\"0\"}<8");
        for (wrong, says) in [
            ("load < 8", "begin with http://"),
            ("http://a", "a figure with its bound"),
            ("https://a load < 8", "begin with http://"),
            ("http://a load", "node_load1 < 8"),
        ] {
            let error = wrong.parse::<FigureSource>().unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_refused_and_not_repeated() {
        for wrong in [
            "http://u:secret@a/metrics load < 8",
            "http://secret@a load < 8",
            "https://u:secret@a/metrics load < 8",
            "u:secret@a/metrics load < 8",
        ] {
            let error = wrong.parse::<FigureSource>().unwrap_err();
            assert!(error.contains("a user or a password"), "{wrong}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        for right in ["http://a/b@c load < 8", "http://a load{mail=\"b@c\"} < 8"] {
            assert!(right.parse::<FigureSource>().is_ok(), "{right}");
        }
    }
}
