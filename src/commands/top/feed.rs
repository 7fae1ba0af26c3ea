//! Listens to the gateway, and goes on trying when it is gone.

use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;

use super::address::Address;
use super::api::{Config, History, Origins, Problem, Sample, Zones};
use super::client::{Client, Lost, next, parse, strange};
use super::sse::{Event, Reader};

/// Between two tries to reach the gateway.
const PAUSE: Duration = Duration::from_secs(1);

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

pub(super) struct Feed {
    client: Client,
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
        client: Client::new(address),
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

/// Of a sample: how often the file was put into force, and what is wrong with it.
type FileState = (u64, Option<Problem>);
