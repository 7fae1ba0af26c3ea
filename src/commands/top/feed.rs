//! Listens to the gateway, and goes on trying when it is gone.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use awc::error::{ConnectError, SendRequestError};
use awc::http::StatusCode;
use awc::{Client, ClientResponse};
use bytes::Bytes;
use futures_core::Stream;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::api::{Config, History, Origins, Problem, Sample, Zones};
use super::plain::Plain;
use super::sse::{Event, Reader};

/// For an answer, and between two events: one comes every second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two tries to reach the gateway.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest answer that is read.
const LONGEST: usize = 64 << 20;

/// What the gateway says, or that it says nothing any more.
#[derive(Debug)]
pub(super) enum News {
    Zones(Zones),
    Origins(Origins),
    Config(Config),
    /// Seconds that have passed, and the gateway listens again.
    History(Vec<Sample>),
    Sample(Sample),
    Lost(Lost),
}

/// Why there is no news.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Lost {
    #[error("{0}")]
    Unreachable(String),
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Silent,
    #[error("the connection ended")]
    Ended,
    #[error("it answers {1} to {0}")]
    Refused(&'static str, StatusCode),
    #[error("what it answers to {0} is not what a drip gateway says: {1}")]
    Strange(&'static str, Plain),
}

pub(super) struct Feed {
    client: Client,
    address: Address,
    tell: Sender<News>,
    /// The last sample heard, so that after a pause only what is new is sent.
    last: Option<String>,
}

/// Why the feed stops.
enum Stop {
    Lost(Lost),
    /// Nobody listens.
    Unheard,
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

/// The news of the gateway at `address`, from now on.
pub(super) fn listen(address: Address) -> Receiver<News> {
    let (tell, told) = channel(16);
    let feed = Feed {
        // The timeout of awc would also end the live events.
        client: Client::builder().disable_timeout().finish(),
        address,
        tell,
        last: None,
    };
    actix_rt::spawn(feed.run());
    told
}

impl Feed {
    async fn run(mut self) {
        loop {
            match self.follow().await {
                Stop::Unheard => return,
                Stop::Lost(lost) => {
                    if self.tell(News::Lost(lost)).await.is_err() {
                        return;
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }

    async fn follow(&mut self) -> Stop {
        match self.events().await {
            Err(stop) => stop,
            Ok(()) => Stop::Lost(Lost::Ended),
        }
    }

    async fn events(&mut self) -> Result<(), Stop> {
        const LIVE: &str = "/api/live";
        let mut response = self.get(LIVE, self.last.as_deref()).await?;
        let mut file = None;
        self.refresh(&mut file, None).await?;
        let mut reader = Reader::default();
        while let Some(bytes) = next(&mut response).await? {
            let events = reader.read(&bytes);
            for event in events.map_err(|error| strange(LIVE, &error.to_string()))? {
                if let Some(sample) = self.pass_on(LIVE, event).await? {
                    self.refresh(&mut file, Some(sample)).await?;
                }
            }
        }
        Ok(())
    }

    /// The state of the file that a sample tells of, if it was one.
    async fn pass_on(
        &mut self,
        path: &'static str,
        event: Event,
    ) -> Result<Option<FileState>, Stop> {
        if event.name == "history" {
            let History { samples } = parse(path, event.data.as_bytes())?;
            if let Some(sample) = samples.last() {
                self.last = Some(sample.seq.to_string());
            }
            self.tell(News::History(samples)).await?;
            return Ok(None);
        }
        if event.name != "sample" {
            return Ok(None);
        }
        let sample: Sample = parse(path, event.data.as_bytes())?;
        let id = event.id.unwrap_or_else(|| sample.seq.to_string());
        // It goes into a header.
        self.last = id.bytes().all(|byte| byte.is_ascii_digit()).then_some(id);
        let state = (sample.reload, sample.error.clone());
        self.tell(News::Sample(sample)).await?;
        Ok(Some(state))
    }

    /// Asks again for what samples do not say; for the file only where a sample says that it changed.
    async fn refresh(
        &self,
        known: &mut Option<FileState>,
        state: Option<FileState>,
    ) -> Result<(), Stop> {
        if state.is_none() || *known != state {
            self.tell(News::Config(self.ask("/api/config").await?))
                .await?;
            *known = state;
        }
        self.tell(News::Zones(self.ask("/api/zones").await?))
            .await?;
        self.tell(News::Origins(self.ask("/api/origins").await?))
            .await
    }

    async fn ask<T: DeserializeOwned>(&self, path: &'static str) -> Result<T, Lost> {
        let mut response = self.get(path, None).await?;
        let body = timeout(PATIENCE, response.body().limit(LONGEST)).await;
        let body = body
            .map_err(|_| Lost::Silent)?
            .map_err(|error| strange(path, &error.to_string()))?;
        parse(path, &body)
    }

    async fn get(
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

    async fn tell(&self, news: News) -> Result<(), Stop> {
        self.tell.send(news).await.map_err(|_| Stop::Unheard)
    }
}

/// Of a sample: how often the file was put into force, and what is wrong with it.
type FileState = (u64, Option<Problem>);

type Read = Result<Bytes, awc::error::PayloadError>;

/// The next bytes of an answer; none at its end.
async fn next<S>(response: &mut ClientResponse<S>) -> Result<Option<Bytes>, Lost>
where
    S: Stream<Item = Read> + Unpin,
{
    let bytes = poll_fn(|context| Pin::new(&mut *response).poll_next(context));
    let bytes = timeout(PATIENCE, bytes).await.map_err(|_| Lost::Silent)?;
    bytes.transpose().map_err(|_| Lost::Ended)
}

fn parse<T: DeserializeOwned>(path: &'static str, text: &[u8]) -> Result<T, Lost> {
    serde_json::from_slice(text).map_err(|error| strange(path, &error.to_string()))
}

fn strange(path: &'static str, why: &str) -> Lost {
    Lost::Strange(path, Plain::new(why))
}

fn unreachable(error: &SendRequestError) -> Lost {
    let text = match error {
        SendRequestError::Connect(ConnectError::Io(error)) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        },
        SendRequestError::Connect(error) => error.to_string(),
        _ => return Lost::Ended,
    };
    Lost::Unreachable(Plain::new(&text).to_string())
}
