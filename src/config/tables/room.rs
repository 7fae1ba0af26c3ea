//! `[origins.NAME.room]`: a waiting room in front of an origin.
//!
//! A visitor draws a number and gets a *ticket* with it. The room calls visitors in the order of
//! their numbers. A visitor who comes after the call has a *session*, until it is idle for too
//! long. In `table!`, an entry is a field of the file: its type, its reader with the default, when
//! a change takes effect, and its meaning (see `table_settings`, and `kinds` for readers).

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use ::limit::Rate;
use toml::de::DeValue;

use super::limit::{self, Zones};
use super::page;
use super::prelude::*;
use super::zone::{self, key_text, varying_key};
use crate::{KeyTemplate, OpeningTime, Page, RouteLimit, StoreKind};

table! {
    /// `[origins.NAME.room]`: a waiting room, which admits visitors in order of their numbers.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Room {
        /// `None`: no bound.
        sessions: Option<NonZeroU32> = whole_or_zero::<_, 1_000_000>().with_default("0"), Now,
            "Visitors inside at once; 0: not bounded.";
        /// `None`: whenever a session is free. At most 1000 per second.
        admit: Option<Rate> = ADMIT.with_default("\"none\""), Now,
            "New visitors let in, up to 1000r/s; \"none\": as fast as sessions come free.";
        /// 1 second to 1 day.
        idle: Duration = duration::<SECOND, { 24 * HOUR }>().with_default("\"10m\""), Now,
            "A visitor without a request for so long has left, from 1s to 24h.";
        /// 4 seconds to 1 hour.
        ///
        /// The waiting page polls again after 2 s at the earliest. With a shorter `claim`, a
        /// visitor who follows that interval could lose the turn.
        claim: Duration = duration::<{ 4 * SECOND }, HOUR>().with_default("\"60s\""), Now,
            "A visitor who is called and does not come within this time loses the turn, from 4s to 1h.";
        /// `None`: the gateway's own page.
        page: Option<Page> = PAGE.optional(), NextRequest,
            "A file of HTML of at most 256KB for browsers that wait. Default: drip's own page.";
        /// The first secret signs, all are accepted. Empty: the gateway's state file keeps one.
        secret: Vec<RoomSecret> = SECRET.with_default_from(Vec::new), Now,
            "Signs tickets and sessions: a text of at least 16 bytes such as \"${ROOM_SECRET}\", or a list of up to 4, of which the first one signs and all are accepted. Default: made at the first start and kept in the state file.";
        store: StoreKind = word().with_default("\"memory\""), Now,
            "Where the counters and the sessions are; with \"redis\" all gateways have one room.";
        /// `None`: the room is open.
        opens: Option<OpeningTime> = OPENS.optional(), Now,
            "A time such as \"2026-12-01T10:00:00+01:00\". Visitors who come before it wait, and are called in random order from then on.";
        same_site: SameSite = word().with_default("\"lax\""), NextRequest,
            "SameSite of the room's cookies: \"lax\", \"strict\", or \"none\" for a shop in a frame of another site, which also sets Secure.";
        /// Never constant. `None`: anyone who has a ticket can use it.
        bind: Option<KeyTemplate> = BIND.optional(), NextRequest,
            "A ticket and a session are good only for requests with the same value of this key, such as \"$remote_addr\".";
        /// Requests never wait for this limit.
        draw: Draw;
        + draw: Field::of_form(DRAW_FORM), NextRequest,
            "Limits how many numbers a client draws: { zone = \"per_client\", burst = 3 }, or \"none\". Default: a limit by address.",
            |it, settings| match it.draw {
                Draw::ByAddress => None,
                Draw::Unlimited => show_text(&"none"),
                Draw::Zone(limit) => limit::show_draw(limit, &settings.zones),
            };
    }
}

words! {
    /// `SameSite` attribute: cookies on requests that another site causes.
    pub enum SameSite {
        /// Only when a person follows a link.
        Lax = "lax",
        /// Never.
        Strict = "strict",
        /// Always, if the cookie has `Secure`.
        None = "none",
    }
}

impl SameSite {
    /// Returns the value of the cookie attribute.
    pub fn attribute(self) -> &'static str {
        match self {
            Self::Lax => "Lax",
            Self::Strict => "Strict",
            Self::None => "None",
        }
    }
}

/// Limit of the numbers that a client draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draw {
    /// Limit of the room itself, by address.
    #[default]
    ByAddress,
    /// No limit.
    Unlimited,
    /// Limit in a zone.
    Zone(RouteLimit),
}

impl Draw {
    /// Returns the limit in a zone, if a zone is used.
    pub fn zone_limit(self) -> Option<RouteLimit> {
        match self {
            Self::Zone(limit) => Some(limit),
            Self::ByAddress | Self::Unlimited => None,
        }
    }
}

/// Form of `draw`.
const DRAW_FORM: Form = Form::OneOf(&[Form::Word(|| vec!["none"]), Form::Table(limit::DRAW)]);

/// Rate of new visitors.
const ADMIT: Kind<Option<Rate>> = Kind {
    read: |node| {
        let rate = (RATE_OR_NONE.read)(node)?;
        if rate.is_some_and(|rate| rate.per_second() > Room::MAX_ADMIT) {
            return node.refuse(&format!("a room lets in at most 1000 visitors a second; lower it to 1000r/s, or write \"none\" to let them in as fast as sessions come free; found {}", node.found()));
        }
        Some(rate)
    },
    ..RATE_OR_NONE
};

/// Name of the file with the waiting page, which is read with the configuration.
const PAGE: Kind<Page> = Kind {
    form: NOT_EMPTY_FORM,
    read: page::read_room_page,
    show: |it| show_text(&it.file.display()),
};

/// Secret that signs the tickets and the sessions of a waiting room.
///
/// Its debug output never contains the value.
#[derive(Clone, PartialEq, Eq)]
pub struct RoomSecret {
    value: Box<str>,
    /// The secret as TOML: with its value, unless the value comes from the environment or is
    /// hidden.
    toml: Box<str>,
}

impl RoomSecret {
    /// Minimum length of a secret, in bytes. 16 random bytes cannot be guessed.
    pub const MIN_BYTES: usize = 16;

    /// Returns the key of the signature.
    pub fn as_bytes(&self) -> &[u8] {
        self.value.as_bytes()
    }

    /// Returns the secret without its value: shown as a variable of the environment, or as `***`.
    pub fn hidden(&self) -> Self {
        let toml = if is_one_variable(&self.toml) {
            self.toml.clone()
        } else {
            "\"***\"".into()
        };
        let value = "".into();
        Self { value, toml }
    }
}

/// Returns whether a secret as TOML is just one variable, such as `"${ROOM_SECRET}"`.
///
/// Text beside a variable could be a part of the secret.
fn is_one_variable(toml: &str) -> bool {
    let name = toml.strip_prefix("\"${");
    let name = name.and_then(|rest| rest.strip_suffix("}\""));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

impl fmt::Debug for RoomSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomSecret(***)")
    }
}

/// Maximum number of secrets: one that signs, and older ones whose tickets are still in use.
const MAX_SECRETS: usize = 4;

/// One secret, or a list of secrets.
const SECRET: Kind<Vec<RoomSecret>> = Kind {
    form: ONE_OR_LIST_FORM,
    read: read_secrets,
    show: |it| match &it[..] {
        [] => None,
        [secret] => show_bare(&secret.toml),
        all => show_bare(&toml_list(all.iter().map(|it| it.toml.to_string()))),
    },
};

/// Reads secrets. No message shows their values.
fn read_secrets(node: Node) -> Option<Vec<RoomSecret>> {
    let items = node.items().unwrap_or_else(|| vec![node]);
    let count = items.len();
    if !(1..=MAX_SECRETS).contains(&count) {
        return node.refuse_as_is(&format!(
            "a list has from 1 to {MAX_SECRETS} secrets; found {count}"
        ));
    }
    let mut secrets: Vec<Option<RoomSecret>> = Vec::new();
    for item in items {
        let secret = read_secret(item);
        let mut earlier = secrets.iter().flatten();
        if let Some(secret) = &secret
            && earlier.any(|other| other.value == secret.value)
        {
            item.report_as_is("the same secret is there twice; remove one");
        }
        secrets.push(secret);
    }
    secrets.into_iter().collect()
}

/// Reads one secret.
fn read_secret(node: Node) -> Option<RoomSecret> {
    let Some(value) = node.value.as_str() else {
        return node.refuse_as_is(
            "expected a text in quotes such as \"${ROOM_SECRET}\", or a list of them",
        );
    };
    if value.len() < RoomSecret::MIN_BYTES {
        return node.refuse_as_is(&format!(
            "a secret has at least {} bytes, so that nobody can guess it; make one with openssl rand -base64 32",
            RoomSecret::MIN_BYTES
        ));
    }
    let toml = match node.unexpanded() {
        Some(written) => toml_string(&written),
        None => toml_text(value),
    };
    Some(RoomSecret {
        value: value.into(),
        toml: toml.into(),
    })
}

/// A time with an offset from UTC, with or without quotes.
const OPENS: Kind<OpeningTime> = Kind {
    form: Form::Regex(
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})",
    ),
    read: |node| {
        const WHAT: &str = "a time such as \"2026-12-01T10:00:00+01:00\"";
        let DeValue::Datetime(time) = node.value else {
            return values::parse(node, WHAT, str::parse);
        };
        // TOML also has times without quotes.
        let time = time.to_string().parse();
        let report = |error| node.report_problem(&format!("{error}; found {}", node.found()));
        time.map_err(report).ok()
    },
    show: show_text,
};

/// Key that a ticket is bound to.
const BIND: Kind<KeyTemplate> = Kind {
    read: |node| {
        let why = "all visitors have one key; name one such as \"$remote_addr\", or remove bind";
        varying_key(node, key_text(node)?, why)
    },
    ..zone::KEY
};

/// Reads the room of an origin. `node`: its table. `has_state`: whether there is a state file.
pub(super) fn read(mut fields: Fields, node: Node, zones: &Zones, has_state: bool) -> Room {
    let mut room = Room::read(&mut fields);
    let draw = fields.get("draw").and_then(|node| read_draw(node, zones));
    room.draw = draw.unwrap_or_default();
    check(&fields, node, &room, has_state);
    fields.finish();
    room
}

/// Reads `draw`: a limit in a zone, or `"none"`.
fn read_draw(node: Node, zones: &Zones) -> Option<Draw> {
    match node.value.as_str() {
        Some("none") => Some(Draw::Unlimited),
        Some(_) => node.report_expected("{ zone = \"per_client\", burst = 3 }, or \"none\""),
        None => limit::read_draw(node, zones).map(Draw::Zone),
    }
}

/// Reports fields that are missing, or that do not fit together.
fn check(fields: &Fields, node: Node, room: &Room, has_state: bool) {
    let mut bounds = ["sessions", "admit", "opens"].iter();
    let admits_all = room.sessions.is_none() && room.admit.is_none() && room.opens.is_none();
    // A wrong value would have been a bound.
    if admits_all && !bounds.any(|name| fields.is_wrong(name)) {
        node.report_as_is("this room lets everybody in at once; give it sessions such as sessions = 500, admit such as admit = \"10r/s\", or opens");
    }
    if room.secret.is_empty() && room.store == StoreKind::Redis && !fields.is_wrong("secret") {
        node.report_missing("gateways that share a room sign with one secret; add the same secret = \"${ROOM_SECRET}\" at each, or remove store");
    } else if room.secret.is_empty() && !has_state && !fields.is_wrong("secret") {
        node.report_missing("it has no secret to sign tickets with; add secret = \"${ROOM_SECRET}\", or state = \"drip.state\" in [server], where drip keeps one that it makes");
    }
}

impl Room {
    /// Maximum rate of new visitors, per second.
    pub const MAX_ADMIT: f64 = 1000.0;

    /// Returns the secrets as all outputs show them.
    pub(crate) fn shown_secrets(&self) -> Vec<RoomSecret> {
        self.secret.iter().map(RoomSecret::hidden).collect()
    }
}
