//! The fields of a head: ranges of its bytes, with the well-known ones recognised once.

use httparse::Header;
use smallvec::SmallVec;

/// Most fields of a request.
pub const MAX_REQUEST_FIELDS: usize = 256;
/// Most fields of an answer.
pub const MAX_RESPONSE_FIELDS: usize = 512;
/// Most fields behind a body.
const MAX_TRAILERS: usize = 128;

/// A field that the gateway itself reads or replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FieldName {
    /// One that only passes.
    Other,
    /// `Authorization`
    Authorization,
    /// `Connection`
    Connection,
    /// `Content-Length`
    ContentLength,
    /// `Cookie`
    Cookie,
    /// `Date`
    Date,
    /// `Expect`
    Expect,
    /// `Forwarded` (RFC 7239)
    Forwarded,
    /// `Host`
    Host,
    /// A field of one hop that says nothing here: `Keep-Alive`, `Proxy-Connection`, `HTTP2-Settings`.
    Hop,
    /// `RateLimit`
    RateLimit,
    /// `RateLimit-Policy`
    RateLimitPolicy,
    /// `TE`
    Te,
    /// `Trailer`
    Trailer,
    /// `Transfer-Encoding`
    TransferEncoding,
    /// `Upgrade`
    Upgrade,
    /// `X-Forwarded-For`
    XForwardedFor,
    /// `X-Forwarded-Host`
    XForwardedHost,
    /// `X-Forwarded-Proto`
    XForwardedProto,
    /// Another field that tells where a request came from, such as `X-Real-IP`, or one of these with `_` for `-`,
    /// which some origins read alike.
    Origination,
    /// One of the three `X-RateLimit-…` that the gateway writes.
    XRateLimit,
}

impl FieldName {
    /// What the gateway knows of a field's name.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            2 if is(b"te") => Self::Te,
            4 if is(b"host") => Self::Host,
            4 if is(b"date") => Self::Date,
            6 if is(b"cookie") => Self::Cookie,
            6 if is(b"expect") => Self::Expect,
            7 if is(b"upgrade") => Self::Upgrade,
            7 if is(b"trailer") => Self::Trailer,
            9 if is(b"forwarded") => Self::Forwarded,
            9 if is(b"ratelimit") => Self::RateLimit,
            9 if is_like(name, b"x-real-ip") => Self::Origination,
            10 if is(b"connection") => Self::Connection,
            10 if is(b"keep-alive") => Self::Hop,
            13 if is(b"authorization") => Self::Authorization,
            14 if is(b"content-length") => Self::ContentLength,
            14 if is(b"http2-settings") => Self::Hop,
            15 if is(b"x-forwarded-for") => Self::XForwardedFor,
            16 if is(b"x-forwarded-host") => Self::XForwardedHost,
            16 if is(b"ratelimit-policy") => Self::RateLimitPolicy,
            16 if is(b"proxy-connection") => Self::Hop,
            17 if is(b"transfer-encoding") => Self::TransferEncoding,
            17 if is(b"x-forwarded-proto") => Self::XForwardedProto,
            17 if is(b"x-ratelimit-limit") => Self::XRateLimit,
            21 if is(b"x-ratelimit-remaining") => Self::XRateLimit,
            23 if is(b"x-ratelimit-retry-after") => Self::XRateLimit,
            13.. if is_like(&name[..12], b"x-forwarded-") => Self::Origination,
            _ => Self::Other,
        }
    }

    /// Whether it ends at this hop (RFC 9110, section 7.6.1, and what history added).
    #[must_use]
    pub fn is_of_one_hop(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::Hop
                | Self::Te
                | Self::Trailer
                | Self::TransferEncoding
                | Self::Upgrade
        )
    }

    /// Whether it tells where a request came from: only a trusted peer's word is taken.
    #[must_use]
    pub fn tells_origination(self) -> bool {
        matches!(
            self,
            Self::Forwarded
                | Self::Origination
                | Self::XForwardedFor
                | Self::XForwardedHost
                | Self::XForwardedProto
        )
    }

    /// Whether `Connection` cannot name it away: without it the message would mean something else.
    #[must_use]
    pub fn is_kept(self) -> bool {
        matches!(
            self,
            Self::Authorization | Self::ContentLength | Self::Cookie | Self::Host
        ) || self.tells_origination()
    }

    fn bit(self) -> u32 {
        1 << self as u8
    }
}

fn is_like(name: &[u8], known: &[u8]) -> bool {
    let same = |(one, other): (&u8, &u8)| {
        one.eq_ignore_ascii_case(other) || (*one == b'_' && *other == b'-')
    };
    name.iter().zip(known).all(same)
}

/// Where a part of a head stands in its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

impl Span {
    pub(super) fn new(start: usize, length: usize) -> Self {
        // Heads are far shorter: their size is limited to a few MB in the file.
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            start: narrow(start),
            length: narrow(length),
        }
    }

    /// The span of `part`, which is a slice of `whole`.
    pub(super) fn of(whole: &[u8], part: &[u8]) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        Self::new(start, part.len())
    }

    pub(super) fn in_bytes(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        bytes
            .get(start..start + self.length as usize)
            .unwrap_or_default()
    }
}

/// Where a field stands in the bytes of its head.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name_start: u32,
    name_length: u16,
    known: FieldName,
    value: Span,
}

impl Field {
    /// `None` where the name is too long to be one.
    pub(super) fn new(name: Span, known: FieldName, value: Span) -> Option<Self> {
        Some(Self {
            name_start: name.start,
            name_length: name.length.try_into().ok()?,
            known,
            value,
        })
    }

    fn name(self) -> Span {
        Span {
            start: self.name_start,
            length: self.name_length.into(),
        }
    }
}

/// A table of fields, before it is known how many there are.
pub(super) type FieldTable = SmallVec<[Field; 32]>;

/// Makes the table of what was parsed from a request's `head`, and tells which names it has. `None` where a name is too
/// long to be one, or where a line ends in a bare line feed, which the parser takes (RFC 9112, section 2.2).
pub(super) fn strict_table(head: &[u8], parsed: &[Header<'_>]) -> Option<(Box<[Field]>, u32)> {
    let (mut table, mut present) = (Vec::with_capacity(parsed.len()), 0);
    for header in parsed {
        let field = field(head, header)?;
        if !head.get(..field.name_start as usize)?.ends_with(b"\r\n") {
            return None;
        }
        present |= field.known.bit();
        table.push(field);
    }
    let is_strict = head.ends_with(b"\r\n\r\n");
    is_strict.then(|| (table.into_boxed_slice(), present))
}

/// Makes the table of what was parsed from `head`, however its lines end. `None` where a name is too long to be one.
pub(super) fn lenient_table(head: &[u8], parsed: &[Header<'_>]) -> Option<FieldTable> {
    parsed.iter().map(|header| field(head, header)).collect()
}

fn field(head: &[u8], header: &Header<'_>) -> Option<Field> {
    let name = header.name.as_bytes();
    let value = Span::of(head, header.value);
    Field::new(Span::of(head, name), FieldName::of(name), value)
}

/// The names that a table has.
pub(super) fn present(table: &[Field]) -> u32 {
    table.iter().fold(0, |all, field| all | field.known.bit())
}

/// The fields of a head, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pub(super) head: &'a [u8],
    pub(super) table: &'a [Field],
    /// The bits of the names that occur.
    pub(super) present: u32,
}

impl<'a> Fields<'a> {
    /// Every field: what is known of it, its name as it was sent, and its value without the blanks around it.
    #[must_use]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = (FieldName, &'a [u8], &'a [u8])> {
        self.table.iter().map(move |field| {
            let (name, value) = (field.name(), field.value);
            (
                field.known,
                name.in_bytes(self.head),
                value.in_bytes(self.head),
            )
        })
    }

    /// Whether the field occurs.
    #[must_use]
    pub fn has(self, known: FieldName) -> bool {
        self.present & known.bit() != 0
    }

    /// The values of a well-known field, in their order.
    #[must_use]
    pub fn all(self, known: FieldName) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let table = if self.has(known) { self.table } else { &[] };
        let fields = Self { table, ..self };
        fields
            .iter()
            .filter(move |(found, ..)| *found == known)
            .map(|(.., value)| value)
    }

    /// The first value of a well-known field.
    #[must_use]
    pub fn first(self, known: FieldName) -> Option<&'a [u8]> {
        self.all(known).next()
    }

    /// The values of the fields called `name`, in their order.
    pub fn named(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(_, found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(.., value)| value)
    }

    /// The elements of a well-known field that is a list, without the blanks around them.
    pub fn elements(self, known: FieldName) -> impl Iterator<Item = &'a [u8]> {
        self.all(known)
            .flat_map(|line| line.split(|byte| *byte == b','))
            .map(without_blanks)
    }

    /// Whether `Connection` names this field, so that it goes no further.
    #[must_use]
    pub fn names_away(self, known: FieldName, name: &[u8]) -> bool {
        self.has(FieldName::Connection)
            && !known.is_kept()
            && self
                .elements(FieldName::Connection)
                .any(|option| option.eq_ignore_ascii_case(name))
    }
}

/// Text without the blanks around it (RFC 9110, section 5.5): a form feed, or a carriage return without its line feed, is
/// not one of them.
#[must_use]
pub fn without_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The fields behind a body that may go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers(Vec<Line>);

/// A field's name and its value.
type Line = (Box<[u8]>, Box<[u8]>);

impl Trailers {
    /// The fields of `section`, which ends with an empty line; those that frame, route or tell who asks are left out
    /// (RFC 9110, section 6.5.1). `None` where one of them is malformed.
    #[must_use]
    pub fn parse(section: &[u8]) -> Option<Self> {
        let mut lines = [httparse::EMPTY_HEADER; MAX_TRAILERS];
        let parsed = httparse::parse_headers(section, &mut lines);
        let Ok(httparse::Status::Complete((end, parsed))) = parsed else {
            return None;
        };
        let mut trailers = Self::default();
        for line in parsed {
            trailers.push(line.name.as_bytes(), line.value);
        }
        (end == section.len()).then_some(trailers)
    }

    /// Adds a field, unless it is one that must not stand behind a body.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        if may_trail(name) {
            self.0.push((name.into(), value.into()));
        }
    }

    /// Those of the fields whose name `stays`.
    #[must_use]
    pub fn filtered(&self, stays: impl Fn(&[u8]) -> bool) -> Self {
        let fields = self.0.iter().filter(|(name, _)| stays(name));
        Self(fields.cloned().collect())
    }

    /// Every field: its name and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Fields that change what a message means, and so must be known before its body.
const NEVER_TRAILING: [&[u8]; 25] = [
    b"age",
    b"authorization",
    b"cache-control",
    b"content-encoding",
    b"content-range",
    b"content-type",
    b"cookie",
    b"expect",
    b"expires",
    b"host",
    b"location",
    b"max-forwards",
    b"pragma",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"range",
    b"retry-after",
    b"set-cookie",
    b"vary",
    b"www-authenticate",
    b"if-match",
    b"if-modified-since",
    b"if-none-match",
    b"if-range",
    b"if-unmodified-since",
];

fn may_trail(name: &[u8]) -> bool {
    let known = FieldName::of(name);
    let is_pseudo = name.first() == Some(&b':');
    known == FieldName::Other
        && !is_pseudo
        && !NEVER_TRAILING
            .iter()
            .any(|never| name.eq_ignore_ascii_case(never))
}

#[cfg(test)]
mod tests;
