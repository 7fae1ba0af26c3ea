//! `[[routes]]`: which requests go to which origin, and which zones limit them.
//!
//! `routes` reads the list, and `route_match` the fields that select the requests of a route. In
//! `table!`, an entry is a field of the file: its type, its reader with the default, when a change
//! takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as `BOOLEAN`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use ::limit::Moment;

use super::header_fields::{REQUEST_FIELDS, RESPONSE_FIELDS};
use super::limit;
use super::networks::NETWORK_LIST;
use super::page::PAGES;
use super::prelude::*;
use super::route_match::{CONDITIONS, HOSTS, METHODS, PATH};
use super::{cost, rewrite};
use crate::{
    ClientNetworks, Collapse, Cors, CostRule, FieldEdits, HostPattern, Jwt, Matcher, Networks,
    Origin, Pages, PathPattern, PathRewrite, RequestInputs, RouteLimit, Settings, Statuses,
};

/// Text of a rejection.
const REJECT_BODY: Kind<String> = Kind {
    read: |node| match node.value.as_str() {
        Some(_) => (TEXT.read)(node),
        None => node.report_expected(
            "a text in quotes; for a file, write pages = { \"429\" = \"busy.html\" }",
        ),
    },
    ..TEXT
};

table! {
    /// One of the `[[routes]]`.
    ///
    /// No two routes have the same path, hosts, methods, conditions and listen.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Route {
        path: PathPattern = PATH.required("\"/\""), NextRequest,
            "A prefix, compared byte by byte; \"= /exact\" for one path; \"regex:^/u/[0-9]+$\" for a regular expression.";
        /// Empty: every host.
        hosts: Vec<HostPattern> = HOSTS.with_default_from(Vec::new).named("host"), NextRequest,
            "Only requests for this host, or for the hosts of this list; \"*.example.com\" takes all below it.";
        /// Empty: every method.
        methods: Vec<String> = METHODS.with_default("[]"), NextRequest,
            "Only these methods.";
        /// Sorted. Empty: no conditions.
        conditions: Vec<Matcher> = CONDITIONS.with_default_from(Vec::new).named("match"), NextRequest,
            "Only requests with all these values: { \"header:x-version\" = \"2\", \"query:debug\" = \"\", \"cookie:beta\" = \"regex:^on\" }.";
        /// `None`: every address.
        listen: Option<Arc<str>>;
        + listen: Field::of_form(NOT_EMPTY_FORM), NextRequest,
            "Only requests to the address of this name in listen of [server].",
            |it, _| show_text(it.listen.as_ref()?);
        allow: Option<Networks> = NETWORK_LIST.optional(), NextRequest,
            "Only clients of these networks, or of { file = \"partners.txt\" }; others get 403.";
        deny: Option<Networks> = NETWORK_LIST.optional(), NextRequest,
            "Clients of these networks get 403. The most specific network of allow and deny decides.";
        /// Combined decision of `allow` and `deny`; `None` without both.
        networks: Option<Arc<ClientNetworks>>;
        /// Action for requests of the route.
        action: RouteAction;
        + origin: Field::of_form(Form::Text), NextRequest,
            "Where the requests go: a name from [origins]. Required without refuse.",
            |it, settings| show_text(&settings.origins[it.origin()?].name);
        + refuse: Field::of_form(STATUS.form), NextRequest,
            "Answer each request with this status instead of sending it to an origin.",
            |it, _| match it.action {
                RouteAction::Refuse(status) => (STATUS.show)(&status),
                RouteAction::Forward(_) | RouteAction::Maintenance { .. } => None,
            };
        /// Class of the requests at the origin's gate; empty if the origin has no classes.
        class: Arc<str>;
        + class: Field::of_form(NOT_EMPTY_FORM), NextRequest,
            "Class of these requests at the gate. Default: the origin's first class.",
            |it, _| (!it.class.is_empty()).then(|| show_text(&it.class))?;
        /// Whether requests use the waiting room of the origin, if it has one.
        room: bool;
        + room: Field::of_form(Form::Boolean).with_default("true"), NextRequest,
            "Use the waiting room of the origin, if it has one; false: requests of this route bypass it.",
            |it, settings| {
                let has_room = settings.origins[it.origin()?].room.is_some();
                (has_room || !it.room).then(|| show_bare(&it.room))?
            };
        /// Whether `room` is true and the origin has a room.
        asks_room: bool;
        /// Sharing of answers between equal requests; `None`: no sharing.
        collapse: Option<Arc<Collapse>>;
        + collapse: Field::of_form(Form::Table(Collapse::TABLE)), NextRequest,
            "Equal requests that come together get one answer of the origin.",
            |it, settings| show_table(it.collapse.as_deref(), settings);
        /// Sites whose scripts may read the responses; `None`: the origin decides.
        cors: Option<Arc<Cors>>;
        + cors: Field::of_form(Form::Table(Cors::TABLE)), NextRequest,
            "Sites whose scripts may read the responses; drip answers their preflights before any limit.",
            |it, settings| show_table(it.cors.as_deref(), settings);
        /// Hash of all settings that change the origin's answers or the equality of requests.
        ///
        /// 0 without `collapse`. The hash is the same each time the same file is loaded.
        collapse_stamp: u64;
        /// Fields and query arguments that the limits, `collapse` and the conditions read.
        inputs: RequestInputs;
        /// Token verifiers of the whole file.
        jwt: Arc<[Jwt]>;
        /// Applies in the zones and at the origin's gate.
        cost: CostRule;
        + cost: Field::of_form(cost::FORM).with_default("1"), NextRequest,
            "What a request counts for.",
            |it, settings| cost::show_rule(&it.cost, settings);
        refund: Vec<Statuses> = REFUND.with_default("[]"), NextRequest,
            "A request that is answered so is not charged in its zones after all.";
        /// Each zone occurs at most once. Empty: the route only forwards.
        limits: Vec<RouteLimit>;
        + limits: Field::of_form(limit::FORM).with_default("[]"), NextRequest,
            "The zones that limit these requests; without limits a route only forwards.",
            |it, settings| limit::show_limits(&it.limits, &settings.zones);
        /// Total for its zones and the origin's gate.
        max_wait: Option<Duration> = DURATION_OR_NONE.with_default("\"none\""), NextRequest,
            "A request that would wait longer is rejected on arrival.";
        /// `None`: the value of the origin.
        response_timeout: Option<Duration> = TIMEOUT.optional(), NextRequest,
            "Longest silence of the origin before the head of its response. Default: that of the origin.";
        dry_run: bool = BOOLEAN.with_default("false"), NextRequest,
            "Decide, count and log, but let every request pass its zones at once.";
        reject_status: u16 = STATUS.with_default("429"), NextRequest,
            "Status of a rejection.";
        reject_body: String = REJECT_BODY.with_default("\"Too many requests\\n\""), NextRequest,
            "Body of a rejection for which pages has no file.";
        pages: Pages = PAGES.with_default("{}"), NextRequest,
            "Files instead of the short texts of drip's own responses, by status: { \"429\" = \"busy.html\", \"5xx\" = \"down.html\" }.";
        origin_pages: bool = BOOLEAN.with_default("false"), NextRequest,
            "Send these files instead of the origin's responses 502 to 504, too.";
        access_log: bool = BOOLEAN.with_default("true"), NextRequest,
            "Whether these requests have lines in the access log.";
        headers: Vec<RatelimitHeader> = HEADERS.with_default("[\"x-ratelimit\"]"), NextRequest,
            "Fields that tell the client its limits, and whether its answer is shared.";
        /// Change of the path for the origin; `None`: the path is forwarded unchanged.
        rewrite: Option<PathRewrite>;
        + strip_prefix: Field::of_form(rewrite::STRIP_FORM), NextRequest,
            "Removed from the beginning of the path that the origin gets.",
            |it, _| rewrite::show_prefix(&it.rewrite.as_ref()?.strip);
        + add_prefix: Field::of_form(rewrite::ADD_FORM), NextRequest,
            "Put before the path that the origin gets, after strip_prefix is removed.",
            |it, _| rewrite::show_prefix(&it.rewrite.as_ref()?.add);
        request_fields: FieldEdits = REQUEST_FIELDS.with_default("{}").named("request_headers"), NextRequest,
            "Fields that the origin gets instead of the client's, with variables as keys have them; false removes one.";
        response_fields: FieldEdits = RESPONSE_FIELDS.with_default("{}").named("response_headers"), NextRequest,
            "Fields of all responses, instead of the origin's, with variables as keys have them; false removes one.";
        /// Applied before the fields of all responses.
        answer_fields: FieldEdits = RESPONSE_FIELDS.with_default("{}").named("answer_headers"), NextRequest,
            "Fields of the responses that drip makes itself, such as a rejection, with variables as keys have them.";
    }
}

/// Fields that select the requests of a route.
pub(super) const SELECTING: [&str; 5] = ["path", "host", "methods", "match", "listen"];

/// Returns whether a field has an effect in a route with `refuse`, which has no origin.
pub(super) fn has_effect_with_refuse(name: &str) -> bool {
    let is_about_access = matches!(name, "refuse" | "allow" | "deny" | "cors" | "access_log");
    let is_about_responses = matches!(name, "pages" | "response_headers" | "answer_headers");
    SELECTING.contains(&name) || is_about_access || is_about_responses
}

/// An error status.
pub(super) const STATUS: Kind<u16> = whole::<_, 400, 599>();

/// List of statuses and classes of statuses.
const REFUND: Kind<Vec<Statuses>> = Kind {
    form: Form::UniqueList(&Form::Regex("[2-5][0-9][0-9]|[2-5]xx"), 0),
    read: |node| {
        let what = "a status such as \"404\" or \"2xx\"";
        values::list(node, "[\"2xx\"]", |item| {
            values::parse(item, what, str::parse)
        })
    },
    show: |it| show_texts(it),
};

words! {
    /// Header fields that inform a client about its limits and its answer.
    #[derive(PartialOrd, Ord)]
    pub enum RatelimitHeader {
        /// `X-RateLimit-Limit` and related fields.
        XRatelimit = "x-ratelimit",
        /// `RateLimit` and `RateLimit-Policy`, the IETF draft.
        Ratelimit = "ratelimit",
        /// `Server-Timing`: the wait of the request in the queue.
        ServerTiming = "server-timing",
        /// `X-Drip-Shared`: way in which an answer of a route with `collapse` was shared.
        Shared = "shared",
    }
}

/// Word for one group of fields.
const HEADER: Kind<RatelimitHeader> = word();

/// List of these words.
const HEADERS: Kind<Vec<RatelimitHeader>> = Kind {
    form: Form::UniqueList(&HEADER.form, 0),
    read: |node| {
        let mut headers = values::list(node, "[\"x-ratelimit\"]", HEADER.read)?;
        // The order in the file has no effect.
        headers.sort();
        Some(headers)
    },
    show: |it| show_bare(&toml_list(it.iter().map(|it| toml_text(it.word())))),
};

/// Action for the requests of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAction {
    /// Forward to the origin with this index in [`Settings::origins`](crate::Settings::origins).
    Forward(usize),
    /// Reject with this status, 400 to 599.
    Refuse(u16),
    /// Reject with 503 until an instant. Never set by a file: see `Maintenances`.
    Maintenance {
        /// Index of the origin after the maintenance.
        origin: usize,
        /// End of the maintenance.
        until: Moment,
    },
}

/// Placeholder until the route has been read completely.
impl Default for RouteAction {
    fn default() -> Self {
        Self::Forward(0)
    }
}

/// Minimum wait of a request for the answer to an equal request in flight.
const MIN_FOLLOW: Duration = Duration::from_millis(10);

impl Route {
    /// Returns the shown fields. Omits fields that have no effect.
    pub(crate) fn rows(&self, settings: &Settings) -> Rows {
        let mut rows = self.shown_rows(settings);
        if self.origin().is_none() {
            rows.retain(|(name, _)| has_effect_with_refuse(name));
        }
        rows
    }

    /// Returns for how long a request may wait for the answer to an equal request in flight.
    ///
    /// `waited`: how long it has waited before.
    ///
    /// The result is `follow_timeout`, but at most the rest of `max_wait`.
    pub fn follow_limit(&self, follow_timeout: Duration, waited: Duration) -> Duration {
        let max_wait = self.max_wait.filter(|_| !self.dry_run);
        let rest = max_wait.map_or(Duration::MAX, |max_wait| max_wait.saturating_sub(waited));
        follow_timeout.min(rest).max(MIN_FOLLOW)
    }

    /// Returns the index of the origin; `None` if the route refuses its requests.
    pub fn origin(&self) -> Option<usize> {
        match self.action {
            RouteAction::Forward(origin) | RouteAction::Maintenance { origin, .. } => Some(origin),
            RouteAction::Refuse(_) => None,
        }
    }

    /// Returns whether a request of the route may be charged another cost than 1.
    pub fn has_cost(&self) -> bool {
        !self.refund.is_empty() || self.cost != CostRule::default()
    }

    /// Returns whether the response decides the charge of a request.
    pub fn charge_depends_on_response(&self) -> bool {
        !self.refund.is_empty() || matches!(self.cost, CostRule::Response(_) | CostRule::Learned(_))
    }

    /// Returns whether the route serves the checks of a certificate authority.
    ///
    /// An authority checks over HTTP without TLS that the host is under control (RFC 8555, section
    /// 8.3).
    pub fn is_for_acme(&self) -> bool {
        self.path.begins_with("/.well-known/acme-challenge/")
    }

    /// Returns the route's name in logs and metrics.
    ///
    /// The name is the path as written, after the hosts if there are any, and before `listen` and
    /// the conditions.
    pub fn name(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        let mut name = match &hosts[..] {
            [] => self.path.to_string(),
            hosts => format!("{} {}", hosts.join(","), self.path),
        };
        if let Some(listen) = &self.listen {
            name.extend([" listen=", listen]);
        }
        for condition in &self.conditions {
            name.extend([" ", &condition.to_string()]);
        }
        name
    }

    /// Returns the fields that select requests. They identify the route across reloads.
    pub fn selector(&self) -> impl Eq + Hash + std::fmt::Debug + '_ {
        (
            &self.path,
            &self.hosts,
            &self.methods,
            &self.conditions,
            &self.listen,
        )
    }

    /// Computes the hash for `collapse_stamp`.
    pub(crate) fn compute_collapse_stamp(&self, origins: &[Origin]) -> u64 {
        let Some(collapse) = &self.collapse else {
            return 0;
        };
        let mut hasher = DefaultHasher::new();
        self.selector().hash(&mut hasher);
        if let Some(origin) = self.origin().and_then(|origin| origins.get(origin)) {
            origin.name.hash(&mut hasher);
            for server in &origin.servers {
                server.url.hash(&mut hasher);
            }
            format!("{:?}", origin.host).hash(&mut hasher);
        }
        format!("{:?}{:?}", self.rewrite, self.request_fields).hash(&mut hasher);
        collapse.key.hash(&mut hasher);
        (&collapse.vary, &collapse.cookies).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the number of conditions besides path, host and method.
    ///
    /// Among otherwise equal routes, the one with the most conditions is tried first.
    pub fn conditions_count(&self) -> usize {
        self.conditions.len() + usize::from(self.listen.is_some())
    }
}
