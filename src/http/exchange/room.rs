//! A request at the waiting room of its origin.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::cookies;
use super::key::{self, NotLimited};
use super::page::{self, RoomValues};
use super::record::RequestRecord;
use super::reply::Reply;
use super::request_info::RequestInfo;
use super::room_fields::RoomFields;
use crate::config::{self, PageContent, Route};
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;
use crate::limit::Waiting;
use crate::observe::metrics::{Rejected, RoomRequest};
use crate::room::{Answered, OriginRoom, SessionText, TicketText};

/// How long a browser keeps a ticket: a sale may open in days.
const TICKET_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The field of a request that only asks whether its visitor is let in: the page sends it, and
/// loads what was wanted once it is. So the origin gets one request, and not two.
const POLL: &str = "drip-poll";

/// The gateway's own page.
static PAGE: LazyLock<Arc<PageContent>> = LazyLock::new(|| {
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
    /// The value of `bind`.
    bind: Vec<u8>,
    /// Whether it is a person who waits before a page, and not a program.
    is_browser: bool,
}

/// Lets a request pass the waiting room of its origin, or returns the response to one that waits.
pub(super) async fn enter<'a>(
    origin: usize,
    route: &'a Route,
    info: &'a RequestInfo<'a>,
    record: &mut RequestRecord<'a>,
) -> Result<(), Reply<'a>> {
    let gateway = record.gateway;
    let settings = gateway.settings().origins.get(origin);
    let Some((room, settings)) = gateway
        .room(origin)
        .zip(settings.and_then(|it| it.room.as_ref()))
    else {
        return Ok(());
    };
    let visit = Visit {
        room,
        settings,
        route,
        info,
        bind: settings
            .bind
            .as_ref()
            .map_or_else(Vec::new, |bind| key::text(bind, info, route)),
        is_browser: is_browser(info),
    };
    let cookie = |name| cookies::value(info.fields().all(FieldName::Cookie), name);
    let session = [named(info, "drip-session"), cookie(room.session_cookie())];
    let ticket = [named(info, "drip-ticket"), cookie(room.ticket_cookie())];
    room.known().await;
    let presented = room.read(texts_of(&session), texts_of(&ticket), &visit.bind);
    let has_ticket = ticket[1].is_some();
    let mut answered = room.answer(presented, &visit.bind, record.began).await;
    if answered == Answered::MustDraw {
        visit.may_draw(gateway).await?;
        answered = room.draw(&visit.bind, record.began).await;
    }
    match answered {
        Answered::Inside(None) => Ok(()),
        Answered::Inside(Some(session)) => {
            let fields = visit.session_fields(session, has_ticket);
            if info.fields().named(POLL).next().is_some() {
                return Err(Reply::of_new_session(fields));
            }
            record.begin_session(fields);
            Ok(())
        }
        Answered::Waits(waiting, text) => {
            let kept = ticket.iter().flatten().nth(presented.ticket_text);
            let kept = kept.and_then(|kept| str::from_utf8(kept).ok());
            Err(visit.waits(&waiting, text.as_ref(), kept))
        }
        Answered::TooOften(waiting) => Err(visit.too_often(&waiting)),
        Answered::SentAway => Err(visit.sent_away()),
        Answered::MustDraw | Answered::NoNumber => {
            Err(Reply::of_status(503).after(Duration::from_secs(2)))
        }
    }
}

fn texts_of<'t>(texts: &'t [Option<Cow<'_, [u8]>>]) -> impl Iterator<Item = &'t [u8]> {
    texts.iter().flatten().map(|text| &**text)
}

/// The value of the only field with this name.
fn named<'a>(info: &RequestInfo<'a>, name: &str) -> Option<Cow<'a, [u8]>> {
    let mut values = info.fields().named(name);
    let value = values.next()?;
    values.next().is_none().then_some(Cow::Borrowed(value))
}

/// Whether a request is for a page that a person sees: only then is there anyone to read one.
fn is_browser(info: &RequestInfo<'_>) -> bool {
    info.head.method() == b"GET" && page::names_html(info.fields())
}

impl<'a> Visit<'a> {
    /// Whether the client may draw a number, by the zone that `draw` names.
    async fn may_draw(&self, gateway: &'a Gateway) -> Result<(), Reply<'a>> {
        let Some(draw) = &self.settings.draw else {
            return Ok(());
        };
        let zone = gateway.zone(draw.zone);
        let key = match key::take(zone.settings(), self.info, self.route) {
            Ok(key) => key,
            Err(NotLimited::Exempt | NotLimited::NoKey) => return Ok(()),
        };
        let plan = zone.settings().plans.index_of(&key);
        let limit = zone.settings().limit_in(plan, draw.limit);
        match zone.join(key, plan, limit, false).await {
            Ok(turn) => {
                turn.take();
                Ok(())
            }
            Err(rejection) => {
                self.room.metrics().count(RoomRequest::DrawRefused);
                let after = rejection.retry_after;
                Err(Reply::rejected(self.route, Rejected::Burst, Some(after)))
            }
        }
    }

    fn session_fields(&self, SessionText(text): SessionText, has_ticket: bool) -> RoomFields {
        let mut cookies = vec![self.cookie(self.room.session_cookie(), &text, None)];
        if has_ticket {
            cookies.push(self.cookie(self.room.ticket_cookie(), "", Some(Duration::ZERO)));
        }
        RoomFields {
            cookies,
            own: (!self.is_browser).then_some(("Drip-Session", text)),
        }
    }

    /// A cookie for the whole host; `age`: how long the client keeps it, if it closes meanwhile.
    fn cookie(&self, name: &str, value: &str, age: Option<Duration>) -> String {
        let mut cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax");
        if let Some(age) = age {
            // Writing to a string does not fail.
            let _ = write!(cookie, "; Max-Age={}", age.as_secs());
        }
        if self.info.is_over_tls() {
            cookie.push_str("; Secure");
        }
        cookie
    }

    fn waits(&self, waiting: &Waiting, text: Option<&TicketText>, kept: Option<&str>) -> Reply<'a> {
        let new = text.map(|TicketText(text)| text.as_str());
        let cookies = new.map(|new| self.cookie(self.room.ticket_cookie(), new, Some(TICKET_AGE)));
        let fields = RoomFields {
            cookies: cookies.into_iter().collect(),
            own: None,
        };
        self.reply(503, self.route.reject_status, waiting, fields, new.or(kept))
    }

    fn too_often(&self, waiting: &Waiting) -> Reply<'a> {
        let fields = RoomFields {
            cookies: Vec::new(),
            own: None,
        };
        self.reply(429, 429, waiting, fields, None)
    }

    fn sent_away(&self) -> Reply<'a> {
        let waiting = Waiting {
            position: None,
            wait: None,
            retry_after: 60,
        };
        let fields = RoomFields {
            cookies: vec![self.cookie(self.room.ticket_cookie(), "", Some(Duration::ZERO))],
            own: None,
        };
        self.reply(503, self.route.reject_status, &waiting, fields, None)
    }

    /// The response to a visitor who waits: a page for a person, else a text.
    fn reply(
        &self,
        to_browser: u16,
        to_program: u16,
        waiting: &Waiting,
        mut fields: RoomFields,
        ticket: Option<&str>,
    ) -> Reply<'a> {
        let after = Duration::from_secs(waiting.retry_after);
        if self.is_browser {
            let content = self
                .settings
                .page
                .as_ref()
                .map_or(&*PAGE, |page| &page.content);
            let values = self.values(waiting);
            return Reply::of_room_page(to_browser, content, values, fields).after(after);
        }
        fields.own = ticket.map(|ticket| ("Drip-Ticket", ticket.to_owned()));
        let is_json = page::prefers_json(self.info.fields());
        let text = if is_json {
            json(waiting, ticket)
        } else {
            text(waiting)
        };
        Reply::of_room(to_program, text, is_json, fields).after(after)
    }

    fn values(&self, waiting: &Waiting) -> RoomValues {
        let opens = self
            .settings
            .opens
            .as_ref()
            .filter(|_| waiting.position.is_none());
        let number = |it: u64| it.to_string();
        RoomValues {
            position: waiting.position.map(number).unwrap_or_default(),
            ahead: waiting
                .position
                .map(|it| number(it - 1))
                .unwrap_or_default(),
            wait: waiting
                .wait
                .filter(|_| waiting.position.is_some())
                .map(about)
                .unwrap_or_default(),
            refresh: number(waiting.retry_after),
            opens: opens.map(ToString::to_string).unwrap_or_default(),
            word: self.room.word().map(|word| word.text).unwrap_or_default(),
        }
    }
}

/// A time as people say it.
fn about(wait: Duration) -> String {
    let minutes = wait.as_secs_f64() / 60.0;
    if minutes < 1.0 {
        return "less than a minute".to_owned();
    }
    if minutes < 90.0 {
        let minutes = minutes.round();
        let s = if minutes > 1.0 { "s" } else { "" };
        return format!("about {minutes} minute{s}");
    }
    format!("about {} hours", (minutes / 60.0).round())
}

fn text(waiting: &Waiting) -> String {
    let mut text = match waiting.position {
        Some(position) => format!("Waiting: place {position}"),
        None => "Waiting".to_owned(),
    };
    if let Some(wait) = waiting.wait {
        let _ = write!(text, ", {}", about(wait));
    }
    text.push('\n');
    text
}

fn json(waiting: &Waiting, ticket: Option<&str>) -> String {
    let wait = waiting.wait.map(|wait| wait.as_secs());
    let body = serde_json::json!({
        "position": waiting.position,
        "wait_seconds": wait,
        "ticket": ticket,
    });
    format!("{body}\n")
}
