//! A client of the admin port.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use awc::ClientResponse;
use awc::error::{ConnectError, SendRequestError};
use awc::http::StatusCode;
use bytes::Bytes;
use futures_core::Stream;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::timeout;

use super::address::Address;
use crate::admin::views::Plain;

/// Timeout for an answer and between two events. An event comes every second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of an answer, in bytes.
const LONGEST: usize = 64 << 20;

/// Why the gateway cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Lost {
    #[error("{0}")]
    Unreachable(String),
    #[error("no answer in time")]
    Silent,
    #[error("the connection ended")]
    Ended,
    #[error("it answers {1} to {0}")]
    Refused(&'static str, StatusCode),
    #[error("what it answers to {0} is not what a drip gateway says: {1}")]
    Strange(&'static str, Plain),
}

pub(super) struct Client {
    client: awc::Client,
    address: Address,
}

impl Client {
    pub(super) fn new(address: Address) -> Self {
        // awc's own timeout would also end the live events.
        let client = awc::Client::builder().disable_timeout().finish();
        Self { client, address }
    }

    pub(super) async fn ask<T: DeserializeOwned>(&self, path: &'static str) -> Result<T, Lost> {
        let mut response = self.get(path, None).await?;
        let body = timeout(PATIENCE, response.body().limit(LONGEST)).await;
        let body = body
            .map_err(|_| Lost::Silent)?
            .map_err(|error| strange(path, &error.to_string()))?;
        parse(path, &body)
    }

    pub(super) async fn get(
        &self,
        path: &'static str,
        after: Option<&str>,
    ) -> Result<ClientResponse<impl Stream<Item = Read> + Unpin + use<>>, Lost> {
        let mut request = self.client.get(format!("http://{}{path}", self.address));
        if let Some(after) = after {
            request = request.insert_header(("last-event-id", after));
        }
        let answer = timeout(PATIENCE, request.send()).await;
        let response = answer
            .map_err(|_| Lost::Silent)?
            .map_err(|error| unreachable(&error))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(Lost::Refused(path, status)),
        }
    }
}

type Read = Result<Bytes, awc::error::PayloadError>;

/// The next bytes of an answer, or `None` at its end.
pub(super) async fn next<S>(response: &mut ClientResponse<S>) -> Result<Option<Bytes>, Lost>
where
    S: Stream<Item = Read> + Unpin,
{
    let bytes = poll_fn(|context| Pin::new(&mut *response).poll_next(context));
    let bytes = timeout(PATIENCE, bytes).await.map_err(|_| Lost::Silent)?;
    bytes.transpose().map_err(|_| Lost::Ended)
}

pub(super) fn parse<T: DeserializeOwned>(path: &'static str, text: &[u8]) -> Result<T, Lost> {
    serde_json::from_slice(text).map_err(|error| strange(path, &error.to_string()))
}

pub(super) fn strange(path: &'static str, why: &str) -> Lost {
    Lost::Strange(path, Plain::new(why))
}

fn unreachable(error: &SendRequestError) -> Lost {
    let text = match error {
        SendRequestError::Connect(ConnectError::Io(error)) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        },
        SendRequestError::Connect(ConnectError::Disconnected) => return Lost::Ended,
        SendRequestError::Connect(error) => error.to_string(),
        _ => return Lost::Ended,
    };
    Lost::Unreachable(Plain::new(&text).to_string())
}
