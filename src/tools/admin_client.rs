//! A client of a gateway's admin port.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use awc::error::{ConnectError, PayloadError, SendRequestError};
use awc::http::{Method, StatusCode, header};
use bytes::Bytes;
use config::{AdminAddress, AdminTokens};
use gateway::status::{Plain, Problem};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::timeout;

/// Maximum time to wait for a response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of a response, in bytes.
const MAX_SIZE: usize = 64 << 20;

/// Reason why the gateway's state cannot be read.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    #[error("{0}")]
    Unreachable(String),
    #[error("no answer in time")]
    Silent,
    #[error("the connection ended")]
    Ended,
    #[error(
        "the gateway has another name: use its address, or add this name to admin_hosts in [server]"
    )]
    OtherName,
    #[error(
        "it wants a token to be read: set DRIP_ADMIN_READ_TOKEN to its token for reading, or DRIP_ADMIN_TOKEN to one for changes"
    )]
    NoToken,
    #[error(
        "it does not know the token in {0}: set DRIP_ADMIN_READ_TOKEN or DRIP_ADMIN_TOKEN as where the gateway starts"
    )]
    UnknownToken(&'static str),
    #[error("it answers {1} to {0}")]
    Refused(String, StatusCode),
    #[error("what it answers to {0} is not what a drip gateway says: {1}")]
    Strange(String, Plain),
    #[error("its answer to {0} has more than {MAX_SIZE} bytes")]
    TooLarge(String),
}

impl ReadError {
    /// Returns whether the user must use another token.
    pub(crate) fn is_about_tokens(&self) -> bool {
        matches!(self, Self::NoToken | Self::UnknownToken(_))
    }
}

/// Reason why the gateway did not make a change, in one line.
#[derive(Debug, Error)]
#[error("{message}")]
pub(crate) struct ChangeError {
    /// Status of the response; `None` without a readable response.
    pub(crate) status: Option<StatusCode>,
    message: String,
}

pub(crate) struct Client {
    http: awc::Client,
    address: AdminAddress,
    tokens: AdminTokens,
}

impl Client {
    /// Creates a client. `tokens`: the tokens given to this process.
    pub(crate) fn new(address: AdminAddress, tokens: AdminTokens) -> Self {
        // Following a redirect would send the token to another host.
        let http = awc::Client::builder().disable_timeout();
        let http = http.disable_redirects().finish();
        Self {
            http,
            address,
            tokens,
        }
    }

    pub(crate) async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, ReadError> {
        let token = self.tokens.to_read();
        let (status, body) = self.exchange(Method::GET, path, token, None).await?;
        match status {
            StatusCode::OK => serde_json::from_slice(&body).map_err(|error| strange(path, &error)),
            StatusCode::MISDIRECTED_REQUEST => Err(ReadError::OtherName),
            StatusCode::UNAUTHORIZED => Err(match self.tokens.variable_to_read() {
                None => ReadError::NoToken,
                Some(variable) => ReadError::UnknownToken(variable),
            }),
            status => Err(ReadError::Refused(path.to_owned(), status)),
        }
    }

    /// Sends a request and returns the status and the body of the response.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        token: Option<&[u8]>,
        body: Option<String>,
    ) -> Result<(StatusCode, Bytes), ReadError> {
        let url = format!("{}{path}", self.address.url());
        let mut request = self.http.request(method, url);
        if let Some(token) = token {
            let value = [b"Bearer ", token].concat();
            request = request.insert_header((header::AUTHORIZATION, value));
        }
        let sent = match body {
            Some(body) => request.content_type("application/json").send_body(body),
            None => request.send(),
        };
        let answer = timeout(PATIENCE, sent).await;
        let mut response = answer
            .map_err(|_| ReadError::Silent)?
            .map_err(|error| unreachable(&error))?;
        let body = timeout(PATIENCE, response.body().limit(MAX_SIZE)).await;
        let body = body
            .map_err(|_| ReadError::Silent)?
            .map_err(|error| match error {
                PayloadError::Overflow => ReadError::TooLarge(path.to_owned()),
                error => strange(path, &error),
            })?;
        Ok((response.status(), body))
    }

    /// Requests a change, with the token given to this process.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<T, ChangeError> {
        let lost = |message| ChangeError {
            status: None,
            message,
        };
        let token = self.tokens.to_change();
        let answer = self.exchange(method, path, token, Some(body)).await;
        let (status, body) = answer.map_err(|why| lost(why.to_string()))?;
        if status.is_success() {
            let why = "its answer is not what a drip gateway says";
            let answer = serde_json::from_slice(&body);
            return answer.map_err(|error| lost(format!("{why}: {error}")));
        }
        let why = reason(&body).unwrap_or_else(|| format!("the gateway answers {status}"));
        let remedy = match (status, self.tokens.permit_changes()) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, false) => {
                "; set DRIP_ADMIN_TOKEN to its token, and start again"
            }
            (StatusCode::UNAUTHORIZED, true) => {
                "; DRIP_ADMIN_TOKEN has another token than the gateway"
            }
            _ => "",
        };
        Err(ChangeError {
            status: Some(status),
            message: format!("{why}{remedy}"),
        })
    }
}

fn strange(path: &str, why: &dyn Display) -> ReadError {
    ReadError::Strange(path.to_owned(), Plain::new(&why.to_string()))
}

/// Returns the error in the body of a response, in one line.
fn reason(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    let first = || {
        let first = error.get("problems")?.get(0)?;
        let first: Problem = serde_json::from_value(first.clone()).ok()?;
        let (location, message) = (first.location(), first.message);
        Some(if location.is_empty() {
            message.to_string()
        } else {
            format!("{location}: {message}")
        })
    };
    let text = error.as_str().map(str::to_owned).or_else(first)?;
    Some(Plain::new(&text).to_string())
}

fn unreachable(error: &SendRequestError) -> ReadError {
    let text = match error {
        SendRequestError::Connect(ConnectError::Io(error)) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        },
        SendRequestError::Connect(ConnectError::Disconnected) => return ReadError::Ended,
        SendRequestError::Connect(error) => error.to_string(),
        _ => return ReadError::Ended,
    };
    ReadError::Unreachable(Plain::new(&text).to_string())
}
