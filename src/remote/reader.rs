use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use awc::http::StatusCode;
use tokio::time::timeout;

use super::client::{Client, Lost};
use crate::config::{AdminAddress, AdminTokens};
use crate::status::fleet::{ClockOffset, Reading, SharedSettings};
use crate::status::views::{Config, Now, Origins, Plain, Zones};
use crate::time::clock;

/// Timeout for all that is read of a gateway at a time.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Largest answer, in bytes.
const MAX_SIZE: usize = 4 << 20;

/// Reads what one picture of several gateways needs of one of them.
///
/// Its own peers are not asked: nothing that is read here makes a gateway read others.
pub(crate) struct Reader {
    client: Client,
    known: Option<Known>,
}

/// What is read anew only after the settings have changed.
struct Known {
    /// The process, and how often it had put its file into force.
    at: (Plain, u64),
    name: Plain,
    version: Plain,
    settings: Arc<SharedSettings>,
}

impl Reader {
    /// `tokens`: the one for reading is sent.
    pub(crate) fn new(address: AdminAddress, tokens: Rc<AdminTokens>) -> Self {
        let client = Client::new(address, tokens);
        let known = None;
        Self { client, known }
    }

    /// Reads the gateway within two seconds.
    pub(crate) async fn read(&mut self) -> Result<Reading, Lost> {
        let read = timeout(TIMEOUT, self.read_all()).await;
        read.unwrap_or(Err(Lost::Silent))
    }

    async fn read_all(&mut self) -> Result<Reading, Lost> {
        let asked = clock::now();
        let now = match self.ask::<Now>("/api/now").await {
            // An older gateway tells no more than what it is at this moment.
            Err(Lost::Refused(_, StatusCode::NOT_FOUND)) => None,
            now => Some(now?),
        };
        let answered = clock::now();
        let time = now.as_ref().map(|now| now.time);
        let offset = time.map(|told| ClockOffset::of(told, asked, answered));
        let Now { id, sample, .. } = now.unwrap_or_default();
        let at = sample.as_ref().map(|sample| (id.clone(), sample.reload));
        let zones: Zones = self.ask("/api/zones").await?;
        let origins: Origins = self.ask("/api/origins").await?;
        let known = match self.known.take() {
            Some(known) if at.as_ref() == Some(&known.at) => known,
            _ => self.settings(at.unwrap_or_default()).await?,
        };
        let known = self.known.insert(known);
        Ok(Reading {
            id,
            name: known.name.clone(),
            version: known.version.clone(),
            settings: Arc::clone(&known.settings),
            clock: offset.filter(|_| time.is_some_and(f64::is_finite)),
            zones: zones.zones,
            origins: origins.origins,
            sample,
        })
    }

    async fn settings(&self, at: (Plain, u64)) -> Result<Known, Lost> {
        let config: Config = self.ask("/api/config").await?;
        Ok(Known {
            at,
            name: config.gateway,
            version: config.version,
            settings: Arc::new(SharedSettings::read(&config.settings)),
        })
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, path: &'static str) -> Result<T, Lost> {
        self.client.ask_within(path, MAX_SIZE).await
    }
}
