//! The simulated network: TCP connections to the store, with delay, loss and partitions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use redis::{Arg, Cmd, RedisError, RedisResult, Value};
use tokio::sync::oneshot;

use super::random::Random;
use super::redis::Reply;
use super::store::{Served, StoreServer, StoreState};
use super::world::{HostId, World};
use crate::store::Url;
use crate::store::simulated;

/// Minimum time after which TCP sends a lost segment again.
const RETRANSMITTED: Duration = Duration::from_millis(200);

/// The links of all gateways to the store.
pub(super) struct Network {
    world: Rc<World>,
    store: Rc<StoreServer>,
    links: RefCell<Vec<Rc<Link>>>,
    random: RefCell<Random>,
}

/// The link between one gateway and the store.
pub(super) struct Link {
    gateway: usize,
    /// Minimum delay of a message.
    least: Cell<Duration>,
    /// Maximum delay of a message.
    most: Cell<Duration>,
    /// Percentage of messages that are lost at the first attempt.
    pub(super) loss: Cell<u64>,
    /// No message passes until this time.
    pub(super) blocked_until: Cell<Duration>,
    connections: RefCell<Vec<Weak<Connection>>>,
    /// Time since which the gateway has been dialing without a break.
    dials_since: Cell<Duration>,
    /// Time at which the last dial ended.
    dialed_until: Cell<Duration>,
}

/// A TCP connection: bytes arrive in order and once, or the connection breaks.
struct Connection {
    network: Rc<Network>,
    link: Rc<Link>,
    /// Time at which dialing began.
    dialed: Duration,
    /// Time at which the connection was open.
    opened: Duration,
    /// Times at which commands with unknown scripts were first sent, by their keys.
    ///
    /// These commands are sent again in full.
    forgotten: RefCell<BTreeMap<Vec<u8>, Duration>>,
    /// Whether the gateway knows that the connection is broken.
    is_broken: Cell<bool>,
    /// Arrival of the last message to the store.
    arrives: Cell<Duration>,
    /// Arrival of the last message from the store.
    returns: Cell<Duration>,
    /// Senders for expected replies, by the number of the message.
    waiting: RefCell<BTreeMap<u64, oneshot::Sender<Replies>>>,
    /// Number of messages sent so far.
    sent: Cell<u64>,
}

/// Index of the first key in the words of a script call.
const KEY: usize = 3;

/// Replies to the commands of one message.
type Replies = RedisResult<Vec<RedisResult<Value>>>;

/// Returns the address of the store, as written by the gateway with this number.
pub(super) fn url(gateway: usize) -> Url {
    format!("redis://gateway-{gateway}:6379")
        .parse()
        .expect("a URL")
}

impl Network {
    pub(super) fn new(world: &Rc<World>, store: &Rc<StoreServer>, random: Random) -> Rc<Self> {
        Rc::new(Self {
            world: Rc::clone(world),
            store: Rc::clone(store),
            links: RefCell::default(),
            random: RefCell::new(random),
        })
    }

    /// Adds the link of the next gateway.
    pub(super) fn add_link(&self, least: Duration, most: Duration) {
        let mut links = self.links.borrow_mut();
        let gateway = links.len();
        links.push(Rc::new(Link {
            gateway,
            least: Cell::new(least),
            most: Cell::new(most),
            loss: Cell::default(),
            blocked_until: Cell::default(),
            connections: RefCell::default(),
            dials_since: Cell::default(),
            dialed_until: Cell::default(),
        }));
    }

    pub(super) fn link(&self, gateway: usize) -> Rc<Link> {
        Rc::clone(&self.links.borrow()[gateway])
    }

    pub(super) fn links(&self) -> Vec<Rc<Link>> {
        self.links.borrow().clone()
    }

    /// Returns the arrival time of a message that is sent over a link now.
    fn arrival(&self, link: &Link) -> Duration {
        let mut random = self.random.borrow_mut();
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let delay = random.number(nanos(link.least.get())..nanos(link.most.get()) + 1);
        let mut arrival = self.world.now() + Duration::from_nanos(delay);
        if random.chance(link.loss.get()) {
            arrival += RETRANSMITTED;
        }
        // A message that would arrive during a partition is sent again afterwards.
        if arrival < link.blocked_until.get() {
            arrival = link.blocked_until.get() + random.millis(0..200);
        }
        arrival
    }

    /// Opens a connection over a link.
    async fn connect(self: Rc<Self>, link: Rc<Link>) -> RedisResult<simulated::Connection> {
        let dial = Dial::begin(&self.world, &link);
        // The handshake takes a round trip.
        for _ in 0..2 {
            let arrival = self.arrival(&link);
            self.world.sleep_until(arrival).await;
        }
        if self.store.state.get() == StoreState::Dead {
            return Err(broken(io::ErrorKind::ConnectionRefused));
        }
        let connection = Rc::new(Connection {
            network: Rc::clone(&self),
            link: Rc::clone(&link),
            dialed: dial.since(),
            opened: self.world.now(),
            forgotten: RefCell::default(),
            is_broken: Cell::default(),
            arrives: Cell::default(),
            returns: Cell::default(),
            waiting: RefCell::default(),
            sent: Cell::default(),
        });
        link.connections
            .borrow_mut()
            .push(Rc::downgrade(&connection));
        Ok(Rc::new(ClientEnd(connection)))
    }
}

/// A dial of a gateway, until dropped: it is connected, refused, or given up.
struct Dial<'a> {
    world: &'a World,
    link: &'a Link,
}

impl<'a> Dial<'a> {
    /// Begins a dial.
    ///
    /// A gateway dials again as soon as the previous dial has failed. So a command has waited at
    /// most since the first of an unbroken series of dials.
    fn begin(world: &'a World, link: &'a Link) -> Self {
        let now = world.now();
        if link.dialed_until.get() < now {
            link.dials_since.set(now);
        }
        Self { world, link }
    }

    /// Returns the time since which the gateway has been dialing without a break.
    fn since(&self) -> Duration {
        self.link.dials_since.get()
    }
}

impl Drop for Dial<'_> {
    fn drop(&mut self) {
        self.link.dialed_until.set(self.world.now());
    }
}

impl Link {
    /// Sets the minimum and maximum delay of a message.
    pub(super) fn set_delay(&self, least: Duration, most: Duration) {
        self.least.set(least);
        self.most.set(most);
    }

    /// Breaks all connections. The store may still process messages in flight.
    pub(super) fn reset(&self) {
        for connection in self.connections.take() {
            if let Some(connection) = connection.upgrade() {
                connection.break_off();
            }
        }
    }
}

impl simulated::Network for Rc<Network> {
    fn dial(&self, url: &Url) -> LocalBoxFuture<'static, RedisResult<simulated::Connection>> {
        let text = url.to_string();
        let number = text.split(['-', ':']).find_map(|part| part.parse().ok());
        let link = self.link(number.expect("the number of a gateway"));
        Rc::clone(self).connect(link).boxed_local()
    }
}

/// End of a connection at the gateway.
struct ClientEnd(Rc<Connection>);

impl simulated::Wire for ClientEnd {
    fn send(&self, commands: Vec<Cmd>) -> LocalBoxFuture<'static, Replies> {
        let connection = Rc::clone(&self.0);
        let Some(replies) = connection.post(&commands) else {
            return std::future::ready(Err(broken(io::ErrorKind::BrokenPipe))).boxed_local();
        };
        let replies = replies.map(|received| match received {
            Ok(replies) => replies,
            Err(_) => Err(broken(io::ErrorKind::ConnectionReset)),
        });
        replies.boxed_local()
    }
}

impl Connection {
    /// Sends commands; `None` if the connection is known to be broken.
    fn post(self: Rc<Self>, commands: &[Cmd]) -> Option<oneshot::Receiver<Replies>> {
        if self.is_broken.get() {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let number = self.sent.get();
        self.sent.set(number + 1);
        self.waiting.borrow_mut().insert(number, sender);
        let commands: Vec<_> = commands.iter().map(words).collect();
        let sent = self.waited_since(&commands);
        let world = Rc::clone(&self.network.world);
        let arrives = self.network.arrival(&self.link).max(self.arrives.get());
        self.arrives.set(arrives);
        world.spawn(HostId::FIRST, self.deliver(number, commands, sent, arrives));
        Some(receiver)
    }

    /// Returns the time since which the gateway waits for the reply to commands that it sends now.
    fn waited_since(&self, commands: &[Vec<Vec<u8>>]) -> Duration {
        let now = self.network.world.now();
        let mut forgotten = self.forgotten.borrow_mut();
        let keys = commands.iter().filter_map(|command| command.get(KEY));
        let before = keys.filter_map(|key| forgotten.remove(key)).min();
        // All commands sent at the instant at which the connection opens have waited for it.
        let waited = (self.opened == now).then_some(self.dialed);
        before.or(waited).unwrap_or(now)
    }

    /// Delivers a message to the store at `arrives`, and its replies to the gateway.
    async fn deliver(
        self: Rc<Self>,
        number: u64,
        commands: Vec<Vec<Vec<u8>>>,
        sent: Duration,
        arrives: Duration,
    ) {
        let (world, store) = (&self.network.world, &self.network.store);
        let keys = commands.iter();
        let keys: Vec<_> = keys.map(|words| words.get(KEY).cloned()).collect();
        world.sleep_until(arrives).await;
        if store.state.get() == StoreState::Dead {
            return self.break_off();
        }
        // Half of the messages in flight are lost when a connection breaks.
        if self.is_broken.get() && self.network.random.borrow_mut().chance(50) {
            return;
        }
        let Some(Served { replies, claim }) = store.serve(self.link.gateway, commands).await else {
            return self.break_off();
        };
        let unknown = keys.into_iter().zip(&replies);
        for (key, _) in unknown.filter(|(_, reply)| reply.is_unknown_script()) {
            let mut forgotten = self.forgotten.borrow_mut();
            forgotten.extend(key.map(|key| (key, sent)));
        }
        let returns = self.network.arrival(&self.link).max(self.returns.get());
        self.returns.set(returns);
        world.sleep_until(returns).await;
        let waiting = self.waiting.borrow_mut().remove(&number);
        if let Some(waiting) = waiting {
            // The gateway may have given up.
            if let Some(claim) = claim.filter(|_| !waiting.is_closed()) {
                store.received(claim, sent);
            }
            let replies = replies.iter().map(Reply::read).collect();
            let _closed = waiting.send(Ok(replies));
        }
    }

    /// Breaks the connection: no further reply arrives.
    fn break_off(&self) {
        self.is_broken.set(true);
        // A gateway that waits for a reply notices that the sender was dropped.
        self.waiting.take();
    }
}

/// Returns the words of a command.
pub(super) fn words(command: &Cmd) -> Vec<Vec<u8>> {
    let words = command.args_iter().map(|arg| match arg {
        Arg::Simple(word) => word.to_vec(),
        _ => Vec::new(),
    });
    words.collect()
}

fn broken(kind: io::ErrorKind) -> RedisError {
    io::Error::from(kind).into()
}
