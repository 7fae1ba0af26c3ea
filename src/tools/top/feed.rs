//! Receives the gateway's samples, and reconnects when the gateway is unreachable.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;

use super::sse::{Event, Reader};
use crate::config::{AdminAddress, AdminTokens};
use crate::remote::client::{Client, Lost, next, parse, strange};
use crate::status::views::{Config, History, Origins, Problem, Sample, Zones};

/// Pause between two tries to reach the gateway.
const PAUSE: Duration = Duration::from_secs(1);

/// What the gateway reports, or the loss of the connection.
#[derive(Debug)]
pub(super) enum News {
    Zones(Zones),
    Origins(Origins),
    Config(Config),
    /// The samples of past seconds. The first event after each connect.
    History(Vec<Sample>),
    Sample(Box<Sample>),
    Lost(Lost),
}

pub(super) struct Feed {
    client: Client,
    tell: Sender<News>,
    /// The id of the last sample received.
    ///
    /// After a reconnect the gateway sends only newer samples.
    last: Option<String>,
}

/// Why the feed stops.
enum Stop {
    Lost(Lost),
    /// The receiver is gone.
    Unheard,
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

/// Starts a feed of the gateway at `address`, and returns its receiver.
pub(super) fn listen(address: AdminAddress, tokens: Rc<AdminTokens>) -> Receiver<News> {
    let (tell, told) = channel(16);
    let feed = Feed {
        client: Client::new(address, tokens),
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
        let mut response = self.client.get(LIVE, self.last.as_deref()).await?;
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

    /// Passes an event on. Returns the state of the file if the event is a sample.
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
        // The id goes into a header.
        self.last = id.bytes().all(|byte| byte.is_ascii_digit()).then_some(id);
        let state = (sample.reload, sample.error.clone());
        self.tell(News::Sample(sample.into())).await?;
        Ok(Some(state))
    }

    /// Fetches what samples do not contain.
    ///
    /// Fetches the file's state only when a sample says that it changed.
    async fn refresh(
        &self,
        known: &mut Option<FileState>,
        state: Option<FileState>,
    ) -> Result<(), Stop> {
        if state.is_none() || *known != state {
            self.tell(News::Config(self.client.ask("/api/config").await?))
                .await?;
            *known = state;
        }
        self.tell(News::Zones(self.client.ask("/api/zones").await?))
            .await?;
        self.tell(News::Origins(self.client.ask("/api/origins").await?))
            .await
    }

    async fn tell(&self, news: News) -> Result<(), Stop> {
        self.tell.send(news).await.map_err(|_| Stop::Unheard)
    }
}

/// From a sample: how often the file was put into force, and its error if it has one.
type FileState = (u64, Option<Problem>);
