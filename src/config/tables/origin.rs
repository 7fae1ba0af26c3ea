//! `[origins.NAME]`: a backend of one or more servers, and the gate in front of it.
//!
//! The gate holds requests back: it keeps to a rate, and gives each request at the origin a permit.
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `TIMEOUT`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use limit::{
    Algorithm, Class, GateLimits, MAX_CLASS_WEIGHT, Moment, Rate, ReuseLimits, WithoutPool,
};

use super::balance::BALANCE;
use super::fail_on::FAIL_ON;
use super::health;
use super::limit::Zones;
use super::names::{check_name, read_index, read_named};
use super::origin_server::{EXAMPLE, SERVERS};
use super::origin_tls;
use super::prelude::*;
use super::room;
use crate::redis::StoreRate;
use crate::{
    Backoff, BackoffMode, Balance, FailOn, Health, OriginServer, OriginTls, Room, ServerUrl,
    StoreKind,
};

table! {
    /// `[origins.NAME]`: a backend of one or more servers.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Origin {
        /// Letters, digits, `_`, `-` and `.`.
        name: String;
        /// Never empty, without duplicates.
        servers: Vec<OriginServer> = SERVERS.required(EXAMPLE), NextRequest,
            "\"http://host:port\", \"https://host:port\", \"h2c://host:port\" (HTTP/2 without TLS) or \"unix:/run/app.sock\"; or a table of url, weight, backup and max_in_flight.";
        resolve: Resolve = word().with_default("\"any\""), NextRequest,
            "What a name with several addresses is: \"any\" (one server, at whichever connects) or \"each\" (as many servers).";
        balance: Balance = BALANCE.with_default("\"least_in_flight\""), NextRequest,
            "Which server gets a request: \"least_in_flight\", or \"hash:\" and a key, such as \"hash:$cookie_session\": all requests of a key go to one server.";
        slow_start: Duration = DURATION.with_default("\"0\""), NextRequest,
            "How long a server that comes back gets less than its weight, and less than its max_in_flight.";
        connect_timeout: Duration = TIMEOUT.with_default("\"1s\""), NextRequest,
            "Time to open a connection, with name lookup and TLS handshake.";
        response_timeout: Duration = TIMEOUT.with_default("\"60s\""), NextRequest,
            "Time from the whole request to the whole response head.";
        /// Maximum time between two bytes of a response's body, or without progress of a request's
        /// body.
        body_timeout: Duration = TIMEOUT.with_default("\"5m\""), NextRequest,
            "Longest pause in a body.";
        tunnel_timeout: Duration = TIMEOUT.with_default("\"1h\""), NextRequest,
            "Longest silence in both directions on an upgraded connection, such as a WebSocket.";
        /// `None`: the body is not received first.
        request_buffer: Option<NonZeroU64> = SIZE_OR_ZERO.with_default("\"0\""), NextRequest,
            "How much of a request's body is received before the request takes a permit, so that a slow upload holds none; \"0\": nothing.";
        /// `None`: responses are not read ahead.
        response_buffer: Option<NonZeroU64> = SIZE_OR_ZERO.with_default("\"0\""), NextRequest,
            "How far a response is read ahead of its client, so that a slow one holds no permit of the origin; \"0\": not at all.";
        on_client_gone: OnClientDisconnect = word().with_default("\"abort\""), NextRequest,
            "What happens to a request that was sent whole when its client disconnects: \"abort\" (its connection is closed), or \"finish\" (it keeps its permit until the origin has answered).";
        max_header_size: usize = HEAD_SIZE.with_default("\"64KB\""), NextRequest,
            "Largest response head: \"1KB\" to \"1MB\".";
        rate: Option<Rate> = RATE_OR_NONE.with_default("\"none\""), Now,
            "The gate: requests that leave for the origin, all clients together; \"none\": no pace.";
        /// In Redis, `rate` or `max_in_flight` is not `None`.
        store: StoreKind = word().with_default("\"memory\""), Now,
            "The gate: where its schedule and its permits are; with \"redis\" all gateways together keep to rate and max_in_flight.";
        /// `None`: unknown.
        gateways: Option<NonZeroU32> = whole::<_, 1, 1024>().optional(), Now,
            "The gate: number of gateways that share it in Redis, used until Redis reports it.";
        max_in_flight: Option<NonZeroUsize> = whole_or_zero::<_, 1_000_000_000>().with_default("0"), Now,
            "The gate: requests at the origin at once; 0: no limit. With store = \"redis\", those of all gateways together.";
        orphan: Duration = TIMEOUT.with_default("\"75s\""), Now,
            "The gate: how long permits of a gateway that vanished stay withheld: longer than the origin's longest request.";
        on_store_failure: WithoutPool = word().with_default("\"local\""), Now,
            "The gate: without Redis, once the lease of its permits has expired: \"local\": this gateway's part of max_in_flight; \"closed\": it starts nothing.";
        /// In the order of the file. Empty: one class for all requests.
        classes: Vec<Class> = CLASSES.with_default_from(Vec::new), Now,
            "The gate: classes of traffic and their weights; the first is that of every route that names none.";
        /// Index of the zone whose keys share the gate fairly; `None`: one FIFO queue for all.
        share: Option<usize>;
        + share: Field::of_form(Form::Text), NextRequest, "The gate: the zone whose keys share it fairly.",
            |it, settings| show_text(&settings.zones[it.share?].name);
        queue: NonZeroUsize = whole::<_, 1, 10_000_000>().with_default("100"), Now,
            "The gate: requests of one key that may wait; only with share.";
        max_queue: NonZeroUsize = whole::<_, 1, 10_000_000>().with_default("10000"), Now,
            "The gate: requests of all keys that may wait.";
        queue_timeout: Duration = DURATION.with_default("\"5s\""), NextRequest,
            "The gate: a request that has waited this long gets 503; \"0\": no request waits.";
        /// If `hold` is above zero, `queue_timeout` is, too.
        hold: Duration = DURATION.with_default("\"0\""), NextRequest,
            "The gate: how long a request waits for an origin that cannot be reached; \"0\": it is answered at once.";
        max_fails: u32 = whole::<_, 1, U32>().with_default("3"), NextRequest,
            "Failures in a row that take one of several servers out.";
        fail_timeout: Duration = TIMEOUT.with_default("\"10s\""), NextRequest,
            "How long that server stays out.";
        /// Empty: no response counts as a failure.
        fail_on: Vec<FailOn> = FAIL_ON.with_default("[]"), NextRequest,
            "Answers that count as failures: statuses, and \"slow:2s\" for heads that take longer.";
        keep_alive: usize = whole::<_, 0, U32>().with_default("256"), NextRequest,
            "Idle connections kept, for each worker and server.";
        keep_alive_timeout: Duration = TIMEOUT.with_default("\"60s\""), NextRequest,
            "How long a connection may be idle and still be used; a second less than its server says in Keep-Alive.";
        keep_alive_time: Duration = DURATION.with_default("\"1h\""), NewConnections,
            "How long a connection is used, up to a tenth less; \"0\": no limit.";
        /// `None`: no limit.
        keep_alive_requests: Option<NonZeroU32> = whole_or_zero::<_, U32>().with_default("10000"), NextRequest,
            "Requests that a connection carries; 0: no limit.";
        host: HostRule = HOST.with_default("\"preserve\""), NextRequest,
            "The Host that the origin gets: \"preserve\" (the client's), \"origin\" (the server's own), or this name.";
        http2: Http2 = word().with_default("\"auto\""), NewConnections,
            "Whether servers over TLS are offered HTTP/2.";
        /// Settings for TLS connections to the servers.
        tls: OriginTls;
        + ca: Field::of_form(NOT_EMPTY_FORM), NewConnections,
            "A PEM file of the authorities that sign the certificates of servers over TLS. Default: the system's.",
            |it, _| show_text(&it.tls.authorities.as_ref()?.file.display());
        + client_cert: Field::of_form(NOT_EMPTY_FORM), NewConnections,
            "A PEM file of the certificate that drip shows to servers over TLS.",
            |it, _| show_text(&it.tls.identity.as_ref()?.certificate_file.display());
        + client_key: Field::of_form(NOT_EMPTY_FORM), NewConnections,
            "A PEM file of the key of client_cert.",
            |it, _| show_text(&it.tls.identity.as_ref()?.key_file.display());
        + server_name: Field::of_form(NOT_EMPTY_FORM), NewConnections,
            "The server name that is sent to servers over TLS, and that their certificates must be for. Default: the host of their URL.",
            |it, _| show_text(&it.tls.server_name.as_ref()?.to_str());
        /// Back-off while the origin is in trouble; `None`: no back-off.
        backoff: Option<Backoff>;
        + backoff: Field::of_form(Form::Table(Backoff::TABLE)), Now,
            "Lowers rate and permits while the origin is in trouble.",
            |it, settings| show_table(it.backoff.as_ref(), settings);
        /// Health checks of the servers; `None`: no checks.
        health: Option<Health>;
        + health: Field::of_form(Form::Table(Health::TABLE)), Now, "Checks of the servers.",
            |it, settings| show_table(it.health.as_ref(), settings);
        /// Waiting room for visitors; `None`: no room.
        room: Option<Room>;
        + room: Field::of_form(Form::Table(Room::TABLE)), Now,
            "A waiting room: it lets visitors in by number.",
            |it, settings| show_table(it.room.as_ref(), settings);
    }
}

/// Weight of a class of requests.
const WEIGHT: Kind<u32> = whole::<_, 1, { MAX_CLASS_WEIGHT as u64 }>();

/// Maximum number of classes of an origin. All are examined for each request that leaves the gate.
const MAX_CLASSES: usize = 8;

const CLASSES_FORM: Form = Form::BoundedByName(NAME, &WEIGHT.form, [1, MAX_CLASSES]);

/// Table of classes of requests, each with its weight.
const CLASSES: Kind<Vec<Class>> = Kind {
    form: CLASSES_FORM,
    read: read_classes,
    show: |it| {
        let row = |class: &Class| Some((class.name.to_string(), show_bare(&class.weight)?));
        (!it.is_empty()).then(|| Shown::Table(it.iter().filter_map(row).collect()))
    },
};

/// Value of `host`.
const HOST: Kind<HostRule> = Kind {
    form: Form::Regex("[0-9A-Za-z._:\\[\\]-]+"),
    read: read_host,
    show: |it| match it {
        HostRule::Preserve => show_text("preserve"),
        HostRule::Origin => show_text("origin"),
        HostRule::Literal(name) => show_text(name),
    },
};

/// Reads the entries of `[origins]`. `has_state`: whether the gateway has a state file.
pub(crate) fn read(entries: &[Node], zones: Zones, has_state: bool) -> Vec<Option<Origin>> {
    read_named("origins", Origin::TABLE, entries, |mut fields, name| {
        let mut origin = Origin {
            name,
            ..Origin::read(&mut fields)
        };
        let share = fields.get("share");
        origin.share = share.and_then(|node| read_index(node, "zones", zones.names));
        origin.tls = origin_tls::read(&mut fields, &origin.servers);
        let backoff = fields.table("backoff", Backoff::TABLE);
        origin.backoff = backoff.map(Backoff::read_all);
        let health = fields.table("health", Health::TABLE);
        let health = health.zip(fields.peek("health"));
        origin.health = health.map(|(table, node)| health::read(table, node));
        let room = fields.table("room", Room::TABLE);
        let room = room.zip(fields.peek("room"));
        origin.room = room.map(|(table, node)| room::read(table, node, &zones, has_state));
        check(&mut fields, &origin);
        fields.finish();
        Some(origin)
    })
}

/// Reports values that do not fit together.
fn check(fields: &mut Fields, origin: &Origin) {
    fields.add_hint("lease", "this belongs to zones; the gate of an origin takes its slots ahead by itself; remove lease");
    // Whether the gate lets no request wait.
    let nobody_waits = origin.queue_timeout.is_zero();
    if let Some(node) = fields.valid_value("store")
        && origin.store == StoreKind::Redis
    {
        match origin.rate {
            None if fields.is_wrong("rate") || fields.is_wrong("max_in_flight") => {}
            None if origin.max_in_flight.is_some() => {}
            None => node.report_problem("gateways share rate and max_in_flight of an origin; give it one of them, such as rate = \"200r/s\", or remove store"),
            Some(rate) => {
                if let Err(problem) = StoreRate::new(rate, Algorithm::LeakyBucket, Moment::default()) {
                    node.report_problem(problem);
                }
            }
        }
        if nobody_waits {
            node.report_problem("a request waits until Redis has given it a slot; raise queue_timeout above \"0\", or remove store");
        }
    }
    let resolves_nothing = origin.resolve == Resolve::Each
        && !fields.is_wrong("servers")
        && origin.names_to_resolve().next().is_none();
    fields.refuse_if(
        resolves_nothing,
        "resolve",
        "no server of this origin has a name for a host; remove resolve",
    );
    if let Some(node) = fields.peek("health").and_then(|node| node.field("grpc")) {
        let speaks_http2 =
            |url: &ServerUrl| url.is_h2c() || url.is_encrypted() && origin.http2 == Http2::Auto;
        let mut servers = origin.servers.iter().map(|server| &server.url);
        if let Some(url) = servers.find(|url| !speaks_http2(url)) {
            node.report_problem(&format!(
                "gRPC needs HTTP/2, and {url} is checked over HTTP/1; write it as h2c:// or https://, or give path instead of grpc"
            ));
        }
    }
    let is_alone = origin.store == StoreKind::Memory && !fields.is_wrong("store");
    fields.refuse_if(
        is_alone,
        "gateways",
        "only gateways that share the gate are counted; add store = \"redis\", or remove gateways",
    );
    fields.refuse_if(
        origin.holds() && nobody_waits,
        "hold",
        "no request waits while queue_timeout is \"0\"; raise it, or remove hold",
    );
}

/// Reads `[origins.NAME.classes]`.
fn read_classes(node: Node) -> Option<Vec<Class>> {
    const WHAT: &str = "a table of weights such as { interactive = 8, batch = 1 }";
    let entries = node.entries_or(WHAT)?;
    if entries.is_empty() {
        node.report_problem(&format!("the table is empty; write {WHAT}, or remove it"));
    }
    values::report_excess(node, MAX_CLASSES, entries.len(), "classes");
    let read_class = |entry: &Node| {
        check_name(*entry);
        let weight = (WEIGHT.read)(*entry)?;
        Some(Class {
            name: entry.name.into(),
            weight,
        })
    };
    // Reads all classes before the first wrong one ends the reading, so that it hides no other.
    let classes: Vec<Option<Class>> = entries.iter().map(read_class).collect();
    classes.into_iter().collect()
}

/// Reads `host`.
fn read_host(node: Node) -> Option<HostRule> {
    const WHAT: &str = "\"preserve\", \"origin\", or a host name such as \"app.internal\"";
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    match node.value.as_str() {
        Some("preserve") => Some(HostRule::Preserve),
        Some("origin") => Some(HostRule::Origin),
        Some(name) if !name.is_empty() && name.chars().all(is_part) => {
            Some(HostRule::Literal(name.to_owned()))
        }
        _ => node.report_expected(WHAT),
    }
}

impl Origin {
    /// Returns the host names whose addresses become servers of their own.
    pub fn names_to_resolve(&self) -> impl Iterator<Item = &str> {
        let is_each = self.resolve == Resolve::Each;
        let servers = self.servers.iter().filter(move |_| is_each);
        servers.filter_map(|server| server.url.name())
    }

    /// Returns the origin with one server per address of a host name, if `resolve` is `each`.
    ///
    /// `addresses`: the known addresses of each name. A name without known addresses stays one
    /// server.
    pub fn at_addresses(&self, addresses: &BTreeMap<String, Vec<IpAddr>>) -> Self {
        let mut origin = self.clone();
        if self.resolve == Resolve::Any {
            return origin;
        }
        let servers_at = |server: &OriginServer| -> Vec<OriginServer> {
            let known = server.url.name().and_then(|name| addresses.get(name));
            let Some(known) = known.filter(|known| !known.is_empty()) else {
                return vec![server.clone()];
            };
            let server_at = |address: &IpAddr| OriginServer {
                url: server.url.at(*address),
                ..server.clone()
            };
            known.iter().map(server_at).collect()
        };
        origin.servers = self.servers.iter().flat_map(servers_at).collect();
        origin
    }

    /// Returns the limits for the reuse of the origin's connections.
    pub fn reuse_limits(&self) -> ReuseLimits {
        ReuseLimits {
            idle: self.keep_alive_timeout,
            age: self.keep_alive_time,
            requests: self.keep_alive_requests.map_or(0, NonZeroU32::get),
        }
    }

    /// Returns the limits of the origin's gate; `None` if there is no gate.
    ///
    /// A gate that only holds requests during an outage has no limits otherwise.
    pub fn gate(&self) -> Option<GateLimits> {
        let has_gate = self.is_limited() || self.holds();
        has_gate.then(|| GateLimits {
            rate: self.rate,
            max_in_flight: self.permits().map(NonZeroUsize::get),
            queue: self.share.map(|_| self.queue.get()),
            max_queue: self.max_queue.get(),
        })
    }

    /// Returns the gate's limits while the origin is reachable; `None` if it then holds nothing.
    pub fn gate_limits(&self) -> Option<GateLimits> {
        self.gate().filter(|_| self.is_limited())
    }

    /// Returns whether each departure is charged to a key or a class.
    ///
    /// This includes requests that need not wait at the gate.
    pub fn charges_departures(&self) -> bool {
        self.share.is_some() || !self.classes.is_empty()
    }

    /// Returns whether requests wait while the origin is unreachable.
    pub fn holds(&self) -> bool {
        !self.hold.is_zero()
    }

    /// Returns the rate that is shared with other gateways; `None` if it is not shared.
    pub fn shared_rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.is_shared())
    }

    /// Returns the permits that are shared with other gateways; `None` if they are not shared.
    pub fn shared_permits(&self) -> Option<NonZeroUsize> {
        self.max_in_flight.filter(|_| self.is_shared())
    }

    /// Returns the back-off, if gateways that share the origin exchange its state; else `None`.
    pub fn shared_backoff(&self) -> Option<&Backoff> {
        let shared = self.backoff.as_ref().filter(|_| self.is_shared());
        shared.filter(|backoff| backoff.mode == BackoffMode::On)
    }

    /// Returns the maximum number of requests in flight at the origin; `None`: no limit.
    ///
    /// The result is `max_in_flight`, or the sum of the servers' limits if that is less.
    pub fn permits(&self) -> Option<NonZeroUsize> {
        let mut limits = self.servers.iter().map(|server| server.max_in_flight);
        // `None` if any server has no limit.
        let sum = limits.try_fold(0, |sum: usize, max| Some(sum.saturating_add(max?.get())));
        let sum = sum.and_then(NonZeroUsize::new);
        self.max_in_flight.into_iter().chain(sum).min()
    }

    /// Returns whether a server has its own `max_in_flight`.
    pub fn limits_servers(&self) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|server| server.max_in_flight.is_some())
    }

    /// Returns whether several gateways share one gate.
    fn is_shared(&self) -> bool {
        self.store == StoreKind::Redis
    }

    /// Returns whether the origin has `rate` or a back-off, or it or a server has `max_in_flight`.
    fn is_limited(&self) -> bool {
        let limits_in_flight = self.max_in_flight.is_some() || self.limits_servers();
        self.rate.is_some() || limits_in_flight || self.backoff.is_some()
    }
}

/// `Host` field that the origin receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// `Host` of the client.
    Preserve,
    /// Host in the URL of the server.
    Origin,
    /// A fixed text.
    Literal(String),
}

words! {
    /// HTTP/2 support of connections to servers over TLS.
    #[derive(Hash)]
    pub enum Http2 {
        /// The server chooses by ALPN.
        Auto = "auto",
        /// HTTP/1.1 only.
        Off = "off",
    }
}

words! {
    /// Action when the client of a request disconnects after the request was sent.
    #[derive(Hash)]
    pub enum OnClientDisconnect {
        /// Close the connection to the origin, and free the permits.
        Abort = "abort",
        /// Keep the permits until the origin has answered, and drop the answer.
        Finish = "finish",
    }
}

words! {
    /// Meaning of a name with several addresses.
    #[derive(Hash)]
    pub enum Resolve {
        /// One server, at whichever address accepts the connection.
        Any = "any",
        /// One server per address.
        Each = "each",
    }
}

words!(WithoutPool);
