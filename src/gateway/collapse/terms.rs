//! Whether a response may answer other requests, and for how long (RFC 9111, sections 3 and 4).

use std::time::Duration;

use config::Collapse;
use limit::Moment;

use super::date::parse_date;
use super::directives::{Directives, seconds};

/// What an answer allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// How long it was fresh when it was made; `None` if it does not say.
    lifetime: Option<Duration>,
    /// How old it was when it arrived.
    age: Duration,
    /// How long it may be used beyond its lifetime while it is fetched anew (RFC 5861).
    while_revalidate: Duration,
    /// How long it may be used beyond its lifetime while the origin fails (RFC 5861).
    if_error: Duration,
    /// Whether it may be used once it is stale although it does not say so itself.
    may_be_stale: bool,
}

/// What the head of a response says of the requests that wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It answers them.
    Shared(Terms),
    /// It answers the request that led alone: the others may get another one.
    Unshareable,
    /// The origin failed.
    Failed,
}

/// The moments until which an answer serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Newcomers get it.
    pub fresh: Moment,
    /// Newcomers get it, and it is fetched anew behind them.
    pub revalidate: Moment,
    /// Newcomers get it if the origin fails.
    pub error: Moment,
}

impl Windows {
    /// When the answer is good for nothing any more.
    pub fn end(&self) -> Moment {
        self.fresh.max(self.revalidate).max(self.error)
    }
}

/// The statuses that are cacheable by default (RFC 9110, section 15.1), less 206: a partial answer
/// is no answer to other requests.
const SHAREABLE: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];

/// Types of bodies that have no end. Others are found out by the time that they take.
const STREAMS: [&[u8]; 3] = [
    b"application/stream+json",
    b"multipart/x-mixed-replace",
    b"text/event-stream",
];

/// The head of a response, as the rules of caches need it.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The status, from 200.
    pub status: u16,
    /// The names and values of all fields of the origin.
    pub fields: &'a [(&'a [u8], &'a [u8])],
    /// When the request left for the origin, by the wall clock.
    pub asked: Moment,
    /// When the head arrived, by the wall clock: what origins write in `Date` is compared with it.
    pub arrived: Moment,
}

impl Head<'_> {
    fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        let is_named = move |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
        let fields = self.fields.iter();
        fields.filter(move |it| is_named(it.0)).map(|it| it.1)
    }

    /// The time in a field; `Err` if it is there and is no time.
    fn date(&self, name: &str) -> Option<Result<Moment, ()>> {
        let value = self.all(name).next()?;
        Some(parse_date(value, self.arrived).ok_or(()))
    }

    /// Whether the answer is the same for all requests of its kind.
    fn varies(&self, collapse: &Collapse) -> bool {
        let names = self
            .all("vary")
            .flat_map(|it| it.split(|byte| *byte == b','));
        let mut names = names.map(<[u8]>::trim_ascii).filter(|it| !it.is_empty());
        names.any(|name| {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            // No request of the kind has one of these.
            let is_absent = is("authorization") || is("cookie") && collapse.cookies.is_none();
            let is_in_key = is("host") || collapse.vary.iter().any(|it| is(it));
            !is_absent && !is_in_key
        })
    }

    /// When it was made, as `Date` says; without a valid one, when it arrived.
    fn made(&self) -> Moment {
        let date = self.date("date").and_then(Result::ok);
        date.unwrap_or(self.arrived)
    }

    /// What the answer was allowed to be used for when it was made (RFC 9111, section 4.2.1).
    fn lifetime(&self, directives: &Directives) -> Option<Duration> {
        let own = directives.s_maxage.or(directives.max_age);
        own.or_else(|| {
            // What cannot be read has expired (section 5.3).
            let Ok(expires) = self.date("expires")? else {
                return Some(Duration::ZERO);
            };
            let several = self.all("expires").nth(1).is_some();
            Some(expires.since(self.made()))
                .filter(|_| !several)
                .or(Some(Duration::ZERO))
        })
    }

    /// How old the answer is when it arrives (RFC 9111, section 4.2.3).
    ///
    /// One without `Age` comes from the origin itself, which makes it as the last step. So the time
    /// that the origin took makes it no older.
    fn age(&self) -> Duration {
        let apparent = self.arrived.since(self.made());
        // The clock of `Date` counts whole seconds.
        let apparent = if apparent < Duration::from_secs(1) {
            Duration::ZERO
        } else {
            apparent
        };
        // Of a list the first member counts, and what is no number does not (section 5.1).
        let first = |line: &[u8]| seconds(line.split(|byte| *byte == b',').next()?);
        let told = self.all("age").next().and_then(first);
        let told = told.map(|told| told + self.arrived.since(self.asked));
        apparent.max(told.unwrap_or_default())
    }

    /// Decides whom the answer serves.
    pub fn judge(&self, collapse: &Collapse) -> Verdict {
        if self.status >= 500 && self.status != 501 {
            return Verdict::Failed;
        }
        // Whatever its fields say: many pages for errors have `no-store`, and those for all have not.
        if !SHAREABLE.contains(&self.status) {
            return Verdict::Unshareable;
        }
        let directives = Directives::of(self.all("cache-control"));
        // A stream has no end that anybody could wait for.
        let media = self.all("content-type").next().unwrap_or_default();
        let media = media.split(|byte| *byte == b';').next().unwrap_or_default();
        let media = media.trim_ascii();
        let is_stream = STREAMS.iter().any(|it| media.eq_ignore_ascii_case(it));
        // It goes before `Cache-Control` and `Expires`, as in nginx, and counts from the arrival.
        let accel_expires = accel_expires(self.all(ACCEL_EXPIRES), self.arrived);
        let forbids_sharing = directives.forbids_sharing && accel_expires.is_none();
        let is_private = is_stream || forbids_sharing || self.all("set-cookie").next().is_some();
        if is_private || self.varies(collapse) {
            return Verdict::Unshareable;
        }
        let age = self.age();
        let lifetime = match accel_expires {
            Some(rest) => Some(age.saturating_add(rest)),
            None => self.lifetime(&directives),
        };
        if lifetime.is_some_and(|lifetime| lifetime <= age) {
            return Verdict::Unshareable;
        }
        let may = |span: Option<Duration>| {
            span.filter(|_| !directives.forbids_stale)
                .unwrap_or_default()
        };
        Verdict::Shared(Terms {
            lifetime,
            age,
            while_revalidate: may(directives.stale_while_revalidate),
            if_error: may(directives.stale_if_error),
            // `s-maxage` forbids it, too (section 5.2.2.10).
            may_be_stale: !directives.forbids_stale && directives.s_maxage.is_none(),
        })
    }
}

impl Terms {
    /// How old the answer is `since` it arrived.
    pub fn age(&self, since: Duration) -> Duration {
        self.age + since
    }

    /// The same `span` later.
    pub fn later(self, span: Duration) -> Self {
        Self {
            age: self.age + span,
            ..self
        }
    }

    /// Until when an answer that arrived at `arrived` serves, by what the route says.
    pub fn windows(&self, collapse: &Collapse, arrived: Moment) -> Windows {
        let own = self
            .lifetime
            .map(|lifetime| lifetime.saturating_sub(self.age));
        let fresh = arrived + own.map_or(collapse.keep, |own| own.min(collapse.keep));
        let keeps = !collapse.keep.is_zero();
        let stale = if self.may_be_stale {
            collapse.stale
        } else {
            Duration::ZERO
        };
        Windows {
            fresh,
            // Newcomers get nothing from before where the route keeps nothing for them.
            revalidate: if keeps {
                fresh + self.while_revalidate
            } else {
                fresh
            },
            // In trouble it is used as long as it allows, whatever the route keeps.
            error: (fresh + stale).max(if self.if_error.is_zero() {
                fresh
            } else {
                arrived + own.unwrap_or(collapse.keep) + self.if_error
            }),
        }
    }
}

/// The name of the field, in lower case. It ends here, and no client gets it.
pub(crate) const ACCEL_EXPIRES: &str = "x-accel-expires";

/// How long a response that arrived at `arrived` may be used; zero: not for another request.
///
/// Seconds, or `@` and the Unix time until which it may be used. As in nginx
/// (`ngx_http_upstream_process_accel_expires`), the first line counts, and one that is no number
/// says nothing: `None`. So does one above an `i64`.
pub(super) fn accel_expires<'a>(
    mut lines: impl Iterator<Item = &'a [u8]>,
    arrived: Moment,
) -> Option<Duration> {
    let value = lines.next()?;
    let until = value.strip_prefix(b"@");
    let digits = until.unwrap_or(value);
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(digits).ok().filter(|_| is_number)?;
    let seconds = Duration::from_secs(number.parse::<i64>().ok()?.try_into().ok()?);
    Some(match until {
        Some(_) => (Moment::default() + seconds).since(arrived),
        None => seconds,
    })
}

#[cfg(test)]
mod tests;
