use std::net::SocketAddr;
use std::time::Duration;

use awc::Client;
use awc::http::header;

use super::score::SaleScore;
use crate::time::clock;
use crate::tools::demo::crowd::client;
use crate::tools::demo::origin::CROWD;
use crate::tools::demo::tally::TENTH;
use crate::tools::random::Random;

/// Visitors who come.
pub(super) const VISITORS: usize = 3000;

/// In which time, in tenths of a second.
pub(super) const WITHIN: usize = 100;

/// How many of those who wait never come back.
pub(super) const LEAVE: f64 = 0.3;

/// Pages that a visitor asks for after the first one.
const PAGES: usize = 3;

/// Shortest time between two pages.
const MIN_PAUSE: Duration = Duration::from_millis(300);

/// What may come on top of it. Both together are below `idle`.
const PAUSE_SPREAD: Duration = Duration::from_millis(600);

/// The field with a ticket, and that with a session.
const TICKET: &str = "drip-ticket";
const SESSION: &str = "drip-session";

/// The crowd before the shop.
pub(super) struct Visitors {
    client: Client,
    url: String,
    score: SaleScore,
    /// How many have come.
    arrived: usize,
}

/// What the gateway answers.
enum SaleAnswer {
    /// The page of the shop; with a session if this is the first one.
    Inside(Option<String>),
    /// To ask again later; with a ticket if there is a new one.
    Waits {
        ticket: Option<String>,
        after: Duration,
    },
    /// Neither.
    Failed,
}

impl Visitors {
    pub(super) fn new(gateway: SocketAddr, score: SaleScore) -> Self {
        Self {
            client: client(None),
            url: format!("http://{gateway}/"),
            score,
            arrived: 0,
        }
    }

    /// Whether all have come.
    pub(super) fn are_all_there(&self) -> bool {
        self.arrived == VISITORS
    }

    /// Lets those come who come up to the end of a tenth. Tenths are counted from the start.
    pub(super) fn come(&mut self, tenth: u64) {
        let tenths = usize::try_from(tenth).unwrap_or(WITHIN).min(WITHIN - 1) + 1;
        let until = VISITORS * tenths / WITHIN;
        let count = until.saturating_sub(self.arrived).max(1);
        let apart = TENTH / u32::try_from(count).unwrap_or(u32::MAX);
        for nth in 0..until.saturating_sub(self.arrived) {
            let visitor = Visitor {
                id: self.arrived,
                client: self.client.clone(),
                url: self.url.clone(),
                score: self.score.clone(),
                random: Random(self.arrived as u64),
            };
            let after = apart * u32::try_from(nth).unwrap_or_default();
            self.score.expect();
            actix_rt::spawn(async move {
                tokio::time::sleep(after).await;
                visitor.visit().await;
            });
            self.arrived += 1;
        }
    }
}

/// One visitor. While it waits it is a ticket and a moment.
struct Visitor {
    id: usize,
    client: Client,
    url: String,
    score: SaleScore,
    random: Random,
}

impl Visitor {
    async fn visit(mut self) {
        self.score.came();
        let Some(session) = self.wait().await else {
            return;
        };
        for _ in 0..PAGES {
            let pause = MIN_PAUSE + PAUSE_SPREAD.mul_f64(self.random.share());
            tokio::time::sleep(pause).await;
            let sent = clock::now();
            match self.ask(Some((SESSION, &session))).await {
                SaleAnswer::Inside(_) => self.score.asked(self.id, sent),
                SaleAnswer::Waits { .. } | SaleAnswer::Failed => {
                    self.score.failed();
                    break;
                }
            }
        }
    }

    /// Asks until it is inside. Returns its session; `None` if it has left.
    async fn wait(&mut self) -> Option<String> {
        let came = clock::now();
        let mut ticket: Option<String> = None;
        loop {
            let sent = clock::now();
            match self.ask(ticket.as_deref().map(|it| (TICKET, it))).await {
                SaleAnswer::Inside(session) => {
                    self.score.entered(self.id, sent, sent.since(came));
                    return session;
                }
                SaleAnswer::Waits { ticket: new, after } => {
                    if ticket.is_none() && self.random.share() < LEAVE {
                        self.score.went();
                        return None;
                    }
                    ticket = new.or(ticket);
                    tokio::time::sleep(after).await;
                    self.score.polled();
                }
                SaleAnswer::Failed => {
                    self.score.gave_up();
                    return None;
                }
            }
        }
    }

    async fn ask(&self, kept: Option<(&str, &str)>) -> SaleAnswer {
        let mut request = self.client.get(&self.url);
        request = request.insert_header((header::USER_AGENT, CROWD));
        if let Some(field) = kept {
            request = request.insert_header(field);
        }
        let Ok(mut response) = request.send().await else {
            return SaleAnswer::Failed;
        };
        // Read to its end so that another visitor can use the connection.
        let _body = response.body().await;
        let field = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        if response.status().is_success() {
            return SaleAnswer::Inside(field(SESSION));
        }
        match field(header::RETRY_AFTER.as_str()).and_then(|it| it.parse().ok()) {
            Some(seconds) => SaleAnswer::Waits {
                ticket: field(TICKET),
                after: Duration::from_secs(seconds),
            },
            None => SaleAnswer::Failed,
        }
    }
}
