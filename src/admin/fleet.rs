//! One picture of this gateway and its peers, while somebody asks for it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::{Admin, api};
use crate::config::AdminAddress;
use crate::limit::Moment;
use crate::remote::client::Lost;
use crate::remote::reader::Reader;
use crate::status::fleet::{ClockOffset, Members, Reading, SharedSettings, Unread, UnreadKind};
use crate::time::clock;

/// For how long a picture is given to all who ask.
const FRESH: Duration = Duration::from_millis(900);

/// When nobody has asked for so long, connections are closed and what was read is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(30);

/// Most requests that wait for one picture.
const MAX_WAITING: usize = 64;

/// Asks for the picture. Its clones ask the same task.
#[derive(Clone)]
pub(super) struct FleetLink(mpsc::Sender<oneshot::Sender<Bytes>>);

impl FleetLink {
    /// Starts the task that makes the picture. It does nothing until it is asked.
    pub(super) fn start(admin: Data<Admin>) -> Self {
        let (ask, asks) = mpsc::channel(MAX_WAITING);
        actix_rt::spawn(run(admin, asks));
        Self(ask)
    }

    /// The picture as JSON; `None`: the gateway does not serve, or too many ask.
    pub(super) async fn picture(&self) -> Option<Bytes> {
        let (tell, told) = oneshot::channel();
        self.0.try_send(tell).ok()?;
        told.await.ok()
    }
}

/// What is kept from one picture to the next.
struct Watched {
    peers: Vec<AdminAddress>,
    readers: Vec<Reader>,
    members: Members,
    /// The last picture, and when it was made.
    last: Option<(Moment, Bytes)>,
}

/// Makes a picture for each who asks, one at a time: all who ask meanwhile get the same.
async fn run(admin: Data<Admin>, mut asks: mpsc::Receiver<oneshot::Sender<Bytes>>) {
    let mut watched: Option<Watched> = None;
    loop {
        let ask = if watched.is_none() {
            asks.recv().await
        } else if let Ok(ask) = timeout(FORGET_AFTER, asks.recv()).await {
            ask
        } else {
            watched = None;
            continue;
        };
        let Some(ask) = ask else {
            return;
        };
        if ask.is_closed() {
            continue;
        }
        if let Some(picture) = picture(&admin, &mut watched).await {
            // The client may have left.
            let _left = ask.send(picture);
        }
    }
}

async fn picture(admin: &Admin, watched: &mut Option<Watched>) -> Option<Bytes> {
    let gateway = admin.gateway()?;
    let peers = &gateway.settings().server.peers;
    if watched.as_ref().is_some_and(|it| it.peers != *peers) {
        *watched = None;
    }
    let watched = watched.get_or_insert_with(|| Watched::new(admin, peers));
    let now = clock::now();
    if let Some((at, picture)) = &watched.last
        && now.since(*at) < FRESH
    {
        return Some(picture.clone());
    }
    let own = own(admin).await.map_err(|why| Unread {
        kind: UnreadKind::Refuses,
        why,
    });
    let readers = watched.readers.iter_mut();
    let read = join_all(readers.map(Reader::read)).await;
    let now = clock::now();
    watched.members.hear(0, own, now);
    for (index, read) in read.into_iter().enumerate() {
        let read = read.map_err(|lost| Unread {
            kind: lost.kind(),
            why: Lost::at_gateway(&lost),
        });
        watched.members.hear(index + 1, read, now);
    }
    let json = serde_json::to_vec(&watched.members.picture());
    let picture = Bytes::from(json.unwrap_or_default());
    watched.last = Some((now, picture.clone()));
    Some(picture)
}

impl Watched {
    fn new(admin: &Admin, peers: &[AdminAddress]) -> Self {
        // A token for changes stays here: peers are only read.
        let tokens = Rc::new(admin.tokens.for_reading());
        let reader = |peer: &AdminAddress| Reader::new(peer.clone(), Rc::clone(&tokens));
        let addresses = peers.iter().cloned().map(Some);
        Self {
            peers: peers.to_vec(),
            readers: peers.iter().map(reader).collect(),
            members: Members::new([None].into_iter().chain(addresses)),
            last: None,
        }
    }
}

/// What is read of this gateway itself.
async fn own(admin: &Admin) -> Result<Reading, String> {
    let gateway = admin.serving().map_err(|it| it.to_string())?;
    let now = api::now::view(admin);
    let config = api::config::view(admin, &gateway);
    let zones = api::zones::views(&gateway).await;
    Ok(Reading {
        id: now.id,
        name: config.gateway,
        version: config.version,
        settings: Arc::new(SharedSettings::read(&config.settings)),
        clock: Some(ClockOffset::default()),
        zones: zones.map_err(|it| it.to_string())?.zones,
        origins: api::origins::views(admin, &gateway).origins,
        sample: now.sample,
    })
}
