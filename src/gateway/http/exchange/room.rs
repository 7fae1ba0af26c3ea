//! One request at the waiting room of its origin.
//!
//! A visitor waits in the room with a *ticket*, which has a position. Once admitted, it gets a
//! *session*. Both are signed texts in a cookie or a field. A *word* is the operator's message to
//! waiting visitors. `crate::room` has the rules.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use config::{self, Draw, PageContent, PageValue, Route, SameSite, client_network};
use limit::{Moment, WaitingVisitor};
use smallvec::SmallVec;

use super::cookies;
use super::key;
use super::page::{self, PageValues};
use super::record::RequestRecord;
use super::reply::{Body, Reply};
use super::request_info::RequestInfo;
use super::response_fields::RoomFields;
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;
use crate::observe::metrics::{Rejected, RoomRequest};
use crate::observe::throttle::Throttle;
use crate::room::{Answered, OriginRoom, Presented, RoomWord, SessionText, TicketText};
use crate::time::clock;
use crate::zone::Join;

/// Time for which a browser keeps a ticket: a sale may open days later.
const TICKET_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Field of a request that only checks whether its visitor is admitted.
///
/// The waiting page sends it, and loads the requested page once admitted. So the origin gets one
/// request, not two.
const POLL: &str = "drip-poll";

/// Time after which a visitor should retry while the room cannot give it a position.
const RETRY_UNKNOWN: Duration = Duration::from_secs(2);

/// Default waiting page.
static DEFAULT_PAGE: LazyLock<Arc<PageContent>> = LazyLock::new(|| {
    Arc::new(PageContent::parse_room(include_str!(
        "../../room/wait.html"
    )))
});

/// A visitor's request.
struct Visit<'a> {
    room: &'a OriginRoom,
    settings: &'a config::Room,
    route: &'a Route,
    info: &'a RequestInfo<'a>,
    /// Value of `bind`: tickets and sessions are valid only with the same value.
    bind: Vec<u8>,
    /// Possible sessions of the visitor, from a field and from cookies.
    sessions: Candidates<'a>,
    /// Possible tickets of the visitor, from a field and from cookies.
    tickets: Candidates<'a>,
    /// Whether a ticket is in a cookie.
    has_ticket_cookie: bool,
}

/// Lets a request pass the waiting room of its origin, or returns the waiting response.
///
/// Returns `None` if a zone (for `draw`) or the store must reply first. Then use [`enter`].
pub(super) fn enter_at_once<'a>(record: &mut RequestRecord<'a>) -> Option<Result<(), Reply<'a>>> {
    let Some(visit) = Visit::new(record) else {
        return Some(Ok(()));
    };
    let presented = visit.presented();
    let room = visit.room;
    let mut answered = room.answer_at_once(presented, &visit.bind, record.began)?;
    if answered == Answered::MustDraw {
        if matches!(visit.settings.draw, Draw::Zone(_)) {
            return None;
        }
        if let Err(reply) = visit.charge_address(record.began) {
            return Some(Err(reply));
        }
        answered = room.draw_at_once(&visit.bind, record.began)?;
    }
    Some(visit.conclude(answered, presented, record))
}

/// Does the same as [`enter_at_once`], and waits for replies of a zone or the store.
pub(super) async fn enter<'a>(record: &mut RequestRecord<'a>) -> Result<(), Reply<'a>> {
    let gateway = record.gateway;
    let Some(visit) = Visit::new(record) else {
        return Ok(());
    };
    if !visit.room.wait_until_known().await {
        // Tickets cannot be verified yet, and a new one would replace the visitor's own.
        return Err(Reply::of_status(503).with_retry_after(RETRY_UNKNOWN));
    }
    let presented = visit.presented();
    let answered = visit.room.answer(presented, &visit.bind, record.began);
    let mut answered = answered.await;
    if answered == Answered::MustDraw {
        visit.charge_draw(gateway, record.began).await?;
        answered = visit.room.draw(&visit.bind, record.began).await;
    }
    visit.conclude(answered, presented, record)
}

/// Texts that may be a ticket or a session.
type Candidates<'a> = SmallVec<[&'a [u8]; 2]>;

/// Seconds after which a visitor that was sent away should retry.
const RETRY_SENT_AWAY: u64 = 60;

/// Maximum number of cookies to verify: other sites of the same domain may set some, too.
const MAX_CANDIDATES: usize = 4;

/// Returns the values of the cookies called `cookie`, and of the `field` if it occurs once.
///
/// Also returns whether there are such cookies.
fn candidates<'a>(info: &RequestInfo<'a>, field: &[u8], cookie: &str) -> (Candidates<'a>, bool) {
    let (mut candidates, mut last_field, mut field_count) = (Candidates::new(), None, 0);
    for (known, name, value) in info.fields().iter() {
        if known == FieldName::Other && name.eq_ignore_ascii_case(field) {
            (last_field, field_count) = (Some(value), field_count + 1);
        } else if known == FieldName::Cookie {
            candidates.extend(cookies::exact_values(value, cookie));
        }
    }
    candidates.truncate(MAX_CANDIDATES);
    let has_cookie = !candidates.is_empty();
    // Programs differ in which one of several fields they read.
    candidates.extend(last_field.filter(|_| field_count == 1));
    (candidates, has_cookie)
}

/// Returns whether a request is for a page that a person sees.
fn is_browser(info: &RequestInfo<'_>) -> bool {
    info.head.method() == b"GET" && page::names_html(info.fields())
}

impl<'a> Visit<'a> {
    /// Reads a visitor's request; `None` if the origin has no room.
    fn new(record: &RequestRecord<'a>) -> Option<Self> {
        let (gateway, info, route) = (record.gateway, record.info, record.route()?);
        let origin = route.origin()?;
        let room = gateway.room(origin)?;
        let settings = gateway.settings().origins.get(origin)?.room.as_ref()?;
        let bind = settings.bind.as_ref();
        let (tickets, has_ticket_cookie) = candidates(info, b"drip-ticket", &room.ticket_cookie);
        Some(Self {
            room,
            settings,
            route,
            info,
            bind: bind.map_or_else(Vec::new, |bind| key::bytes(bind, info, route)),
            sessions: candidates(info, b"drip-session", &room.session_cookie).0,
            tickets,
            has_ticket_cookie,
        })
    }

    /// Verifies the sessions and tickets of the request.
    fn presented(&self) -> Presented {
        let (sessions, tickets) = (self.sessions.iter(), self.tickets.iter());
        self.room
            .read(sessions.copied(), tickets.copied(), &self.bind)
    }

    /// Lets the request continue, or returns the response to the visitor.
    fn conclude(
        &self,
        answered: Answered,
        presented: Presented,
        record: &mut RequestRecord<'a>,
    ) -> Result<(), Reply<'a>> {
        // The visitor has presented texts, and this room signed none of them.
        if presented.is_foreign {
            self.room.metrics.count(RoomRequest::Foreign);
        }
        match answered {
            Answered::Inside(None) => Ok(()),
            Answered::Inside(Some(session)) => {
                let fields = self.session_fields(session);
                if self.info.fields().named(POLL).next().is_some() {
                    return Err(Reply::of_room(204, Body::Text("".into()), fields));
                }
                record.begin_session(fields);
                Ok(())
            }
            Answered::Waits(waiting, text) => {
                // `ticket_text` is the index of the valid ticket among the candidates.
                let known = self.tickets.get(presented.ticket_text);
                let known = known.and_then(|known| str::from_utf8(known).ok());
                Err(self.waiting_reply(&waiting, text.as_ref(), known))
            }
            Answered::TooOften(waiting) => {
                // 429 for browsers and for programs.
                Err(self.reply(429, 429, &waiting, RoomFields::default(), None))
            }
            Answered::SentAway => Err(self.sent_away_reply()),
            Answered::MustDraw | Answered::NoNumber => {
                Err(Reply::of_status(503).with_retry_after(RETRY_UNKNOWN))
            }
        }
    }

    /// Charges the address of the client for a position, by the room's own limit.
    ///
    /// Returns the response if the limit rejects it.
    fn charge_address(&self, now: Moment) -> Result<(), Reply<'a>> {
        static REFUSED: Throttle = Throttle::every(NonZeroU64::new(60).expect("a minute"));
        if self.settings.draw == Draw::Unlimited {
            return Ok(());
        }
        let address = self.info.client.address.map(client_network);
        self.room.charge_draw(address, now).map_err(|after| {
            if let Some(hidden) = REFUSED.show(clock::now()) {
                tracing::warn!(
                    origin = self.room.origin,
                    address = address.map_or("unix:".to_owned(), |it| it.to_string()),
                    hidden,
                    "address drew too many positions: more are rejected. Add it to trusted_proxies if it is a proxy, or set draw if many visitors share it"
                );
            }
            self.refuse_draw(after)
        })
    }

    /// Counts a visitor who may not draw a position now. Returns the response.
    fn refuse_draw(&self, after: Duration) -> Reply<'a> {
        self.room.metrics.count(RoomRequest::DrawRefused);
        Reply::rejected(self.route, Rejected::Burst, Some(after))
    }

    /// Charges the client for a position, by the limit that `draw` configures.
    ///
    /// Returns the response if the limit rejects it.
    async fn charge_draw(&self, gateway: &'a Gateway, now: Moment) -> Result<(), Reply<'a>> {
        let Draw::Zone(draw) = self.settings.draw else {
            return self.charge_address(now);
        };
        let zone = gateway.zone(draw.zone);
        let Ok(key) = key::for_zone(zone.settings(), self.info, self.route) else {
            return Ok(());
        };
        let plan = zone.settings().plans.index_of(&key);
        let limit = zone.settings().limit_in(plan, draw.limit);
        match zone.join(Join::new(key, plan, limit)).await {
            Ok(admission) => {
                admission.take();
                Ok(())
            }
            Err(rejection) => Err(self.refuse_draw(rejection.retry_after)),
        }
    }

    /// Returns the response fields of a new session. They also delete the ticket's cookie.
    fn session_fields(&self, SessionText(text): SessionText) -> RoomFields {
        let mut cookies = vec![self.cookie(&self.room.session_cookie, &text, None)];
        if self.has_ticket_cookie {
            cookies.push(self.cookie(&self.room.ticket_cookie, "", Some(Duration::ZERO)));
        }
        RoomFields {
            cookies,
            for_programs: (!is_browser(self.info)).then_some(("Drip-Session", text)),
        }
    }

    /// Builds a cookie for the whole host. The browser keeps it for `age`, or until it closes.
    fn cookie(&self, name: &str, value: &str, age: Option<Duration>) -> String {
        let same_site = self.settings.same_site;
        let site = same_site.attribute();
        let mut cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite={site}");
        if let Some(age) = age {
            // Writing to a string does not fail.
            let _ = write!(cookie, "; Max-Age={}", age.as_secs());
        }
        // Browsers reject a cookie with `SameSite=None` that is not `Secure`.
        if self.info.is_over_tls() || same_site == SameSite::None {
            cookie.push_str("; Secure");
        }
        cookie
    }

    /// Returns the response to a waiting visitor.
    ///
    /// `new`: a new ticket. `known`: the ticket that the visitor has presented.
    fn waiting_reply(
        &self,
        waiting: &WaitingVisitor,
        new: Option<&TicketText>,
        known: Option<&str>,
    ) -> Reply<'a> {
        let new = new.map(|TicketText(text)| text.as_str());
        let cookies = new.map(|new| self.cookie(&self.room.ticket_cookie, new, Some(TICKET_AGE)));
        let fields = RoomFields {
            cookies: cookies.into_iter().collect(),
            for_programs: None,
        };
        self.reply(
            503,
            self.route.reject_status,
            waiting,
            fields,
            new.or(known),
        )
    }

    /// Returns the response to a visitor whose ticket is not valid any more.
    fn sent_away_reply(&self) -> Reply<'a> {
        let waiting = WaitingVisitor {
            position: None,
            wait: None,
            retry_after: RETRY_SENT_AWAY,
        };
        let fields = RoomFields {
            cookies: vec![self.cookie(&self.room.ticket_cookie, "", Some(Duration::ZERO))],
            for_programs: None,
        };
        self.reply(503, self.route.reject_status, &waiting, fields, None)
    }

    /// Returns the response to a waiting visitor: a page for a person, JSON or text for a program.
    ///
    /// `to_browser`, `to_program`: the status for each. `ticket`: put into the response to a
    /// program.
    fn reply(
        &self,
        to_browser: u16,
        to_program: u16,
        waiting: &WaitingVisitor,
        mut fields: RoomFields,
        ticket: Option<&str>,
    ) -> Reply<'a> {
        let after = Duration::from_secs(waiting.retry_after);
        if is_browser(self.info) {
            let page = self.settings.page.as_ref();
            let content = page.map_or(&*DEFAULT_PAGE, |page| &page.content);
            let page = Body::RoomPage(content, Box::new(self.page_values(waiting)));
            return Reply::of_room(to_browser, page, fields).with_retry_after(after);
        }
        fields.for_programs = ticket.map(|ticket| ("Drip-Ticket", ticket.to_owned()));
        let body = if page::prefers_json(self.info.fields()) {
            Body::Json(waiting_json(waiting, ticket, self.room.word()))
        } else {
            Body::Text(waiting_text(waiting).into())
        };
        Reply::of_room(to_program, body, fields).with_retry_after(after)
    }

    /// Returns the values for the waiting page.
    fn page_values(&self, waiting: &WaitingVisitor) -> PageValues {
        let opens = self.settings.opens.as_ref();
        let opens = opens.filter(|_| waiting.position.is_none());
        let wait = waiting.wait.filter(|_| waiting.position.is_some());
        let number = |it: u64| it.to_string();
        let values = [
            (PageValue::Position, waiting.position.map(number)),
            (PageValue::Ahead, waiting.position.map(|it| number(it - 1))),
            (PageValue::Wait, wait.map(|it| in_words(it).into_owned())),
            (PageValue::Refresh, Some(number(waiting.retry_after))),
            (PageValue::Opens, opens.map(ToString::to_string)),
            (PageValue::Word, self.room.word().map(|word| word.text)),
        ];
        let values = values.into_iter();
        let known = values.filter_map(|(value, text)| Some((value, text?)));
        known.collect()
    }
}

/// Returns a duration in everyday words, such as `about 5 minutes`.
fn in_words(wait: Duration) -> Cow<'static, str> {
    let seconds = wait.as_secs();
    let minutes = (seconds + 30) / 60;
    match (seconds, minutes) {
        (..60, _) => "less than a minute".into(),
        (_, 1) => "about 1 minute".into(),
        (_, ..90) => format!("about {minutes} minutes").into(),
        _ => format!("about {} hours", (minutes + 30) / 60).into(),
    }
}

/// Builds the plain text for a waiting program.
fn waiting_text(waiting: &WaitingVisitor) -> String {
    let mut text = String::with_capacity(64);
    text.push_str("Waiting");
    if let Some(position) = waiting.position {
        text.push_str(": position ");
        text.push_str(itoa::Buffer::new().format(position));
    }
    if let Some(wait) = waiting.wait {
        text.push_str(", ");
        text.push_str(&in_words(wait));
    }
    text.push('\n');
    text
}

/// Builds the JSON for a waiting program.
fn waiting_json(waiting: &WaitingVisitor, ticket: Option<&str>, word: Option<RoomWord>) -> String {
    let wait = waiting.wait.map(|wait| wait.as_secs());
    let mut body = serde_json::json!({
        "position": waiting.position,
        "wait_seconds": wait,
        "ticket": ticket,
    });
    if let Some(word) = word {
        body["word"] = word.text.into();
    }
    format!("{body}\n")
}
