//! A client of a gateway's admin port.
//!
//! Another server may listen there by mistake. So [`Plain`] escapes characters that control a
//! terminal in texts of responses, and the errors say if an answer is not that of a gateway.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use awc::error::{ConnectError, PayloadError, SendRequestError};
use awc::http::{Method, StatusCode, header};
use bytes::Bytes;
use config::{AdminAddress, AdminTokens};
use gateway::status::{Plain, Problem};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;

/// Maximum time to wait for the head of a response, and again for its body.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a response body, in bytes.
const MAX_SIZE: usize = 64 << 20;

/// Reason why the gateway did not answer a request as expected, in one line.
#[derive(Debug, Error)]
#[error("{message}")]
pub(crate) struct AdminError {
    /// Status of the response; `None` without a readable response.
    pub(crate) status: Option<StatusCode>,
    message: String,
}

impl AdminError {
    /// Returns the error of a response that is missing or cannot be read.
    fn unreadable(message: impl Display) -> Self {
        Self {
            status: None,
            message: Plain::new(&message.to_string()).to_string(),
        }
    }

    /// Returns the error of a body that no gateway sends.
    fn not_of_gateway(path: &str, error: impl Display) -> Self {
        Self::unreadable(format!(
            "its answer to {path} is not that of a drip gateway: {error}"
        ))
    }
}

/// A client of one admin port, with the tokens given to this process.
pub(crate) struct Client {
    http: awc::Client,
    address: AdminAddress,
    tokens: AdminTokens,
}

impl Client {
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

    /// Requests a path without a token. Returns the status and the body of any response.
    pub(crate) async fn fetch(&self, path: &str) -> Result<(StatusCode, Bytes), AdminError> {
        self.exchange(Method::GET, path, None, String::new()).await
    }

    /// Reads a resource of the API, with the token for reading, or else with that for changes.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, AdminError> {
        let token = self.tokens.token_to_read();
        let answer = self.exchange(Method::GET, path, token, String::new());
        let (status, body) = answer.await?;
        let message = match (status, self.tokens.variable_to_read()) {
            (StatusCode::OK, _) => return parse(path, &body),
            (StatusCode::MISDIRECTED_REQUEST, _) => {
                "the gateway has another name: use its address, or add this name to admin_hosts in [server]".to_owned()
            }
            (StatusCode::UNAUTHORIZED, None) => {
                "the gateway requires a token: set DRIP_ADMIN_READ_TOKEN to its token for reading, or DRIP_ADMIN_TOKEN to one for changes".to_owned()
            }
            (StatusCode::UNAUTHORIZED, Some(variable)) => format!(
                "the gateway does not accept the token in {variable}: set DRIP_ADMIN_READ_TOKEN or DRIP_ADMIN_TOKEN to the value with which the gateway was started"
            ),
            _ => format!("it answers {status} to {path}"),
        };
        Err(AdminError {
            status: Some(status),
            message,
        })
    }

    /// Requests a change, with the token for changes.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<T, AdminError> {
        let token = self.tokens.token_to_change();
        let (status, body) = self.exchange(method, path, token, body).await?;
        if status.is_success() {
            return parse(path, &body);
        }
        let why = error_text(&body).unwrap_or_else(|| format!("the gateway answers {status}"));
        let remedy = match (status, self.tokens.permits_changes()) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, false) => {
                "; set DRIP_ADMIN_TOKEN to the token of the gateway, and start again"
            }
            (StatusCode::UNAUTHORIZED, true) => {
                "; the token in DRIP_ADMIN_TOKEN is not that of the gateway"
            }
            _ => "",
        };
        Err(AdminError {
            status: Some(status),
            message: format!("{why}{remedy}"),
        })
    }

    /// Sends a request. Returns the status and the body of the response.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        token: Option<&[u8]>,
        body: String,
    ) -> Result<(StatusCode, Bytes), AdminError> {
        let url = format!("{}{path}", self.address.url());
        let mut request = self.http.request(method, url);
        if let Some(token) = token {
            let value = [b"Bearer ", token].concat();
            request = request.insert_header((header::AUTHORIZATION, value));
        }
        let sent = if body.is_empty() {
            request.send()
        } else {
            request.content_type("application/json").send_body(body)
        };
        let no_answer =
            |_| AdminError::unreadable(format_args!("no answer within {} s", TIMEOUT.as_secs()));
        let sent = timeout(TIMEOUT, sent).await.map_err(no_answer)?;
        let mut response = sent.map_err(|error| no_response(&error))?;
        let body = timeout(TIMEOUT, response.body().limit(MAX_SIZE)).await;
        let body = body.map_err(no_answer)?;
        let body = body.map_err(|error| match error {
            PayloadError::Overflow => AdminError::unreadable(format!(
                "its answer to {path} has more than {MAX_SIZE} bytes"
            )),
            error => AdminError::not_of_gateway(path, error),
        })?;
        Ok((response.status(), body))
    }
}

/// Parses the body of a response.
fn parse<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, AdminError> {
    serde_json::from_slice(body).map_err(|error| AdminError::not_of_gateway(path, error))
}

/// Returns the error in the body of a response, in one line.
///
/// The error is a text, or a list of problems of which the first is returned.
fn error_text(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    let text = if let Some(text) = error.as_str() {
        text.to_owned()
    } else {
        let first = error.get("problems")?.get(0)?.clone();
        let problem: Problem = serde_json::from_value(first).ok()?;
        match problem.location() {
            location if location.is_empty() => problem.message.to_string(),
            location => format!("{location}: {}", problem.message),
        }
    };
    Some(Plain::new(&text).to_string())
}

/// Converts the error of a request that got no response.
fn no_response(error: &SendRequestError) -> AdminError {
    AdminError::unreadable(match error {
        SendRequestError::Connect(ConnectError::Io(error))
            if error.kind() == io::ErrorKind::ConnectionRefused =>
        {
            "connection refused".to_owned()
        }
        SendRequestError::Connect(ConnectError::Disconnected) => "the connection ended".to_owned(),
        SendRequestError::Connect(error) => error.to_string(),
        _ => "the connection ended".to_owned(),
    })
}

/// Returns the elements of a list in a response. Other values have none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
