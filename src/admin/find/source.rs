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
        let example = "such as \"http://127.0.0.1:9100/metrics node_load1 < 8\"";
        let parts = text.trim().split_once(char::is_whitespace);
        let (url, bound) = parts.ok_or_else(|| {
            format!("it must be an address, and a figure with its bound, {example}")
        })?;
        if !url.starts_with("http://") || url.len() > MAX_URL {
            return Err(format!("its address must begin with http://, {example}"));
        }
        Ok(Self {
            url: url.to_owned(),
            bound: bound.trim().parse()?,
        })
    }
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
}
