//! The fields of a message's head: ranges of its bytes, with the well-known names recognized once.

use httparse::Header;
use smallvec::SmallVec;

/// Maximum number of fields in a request.
pub const MAX_REQUEST_FIELDS: usize = 256;
/// Maximum number of fields in a response.
pub const MAX_RESPONSE_FIELDS: usize = 512;
/// Maximum number of trailer fields.
const MAX_TRAILERS: usize = 128;

/// The name of a field, as far as the gateway reads or replaces the field itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FieldName {
    /// Any other field: the gateway only forwards it.
    Other,
    /// `Authorization`
    Authorization,
    /// `Connection`
    Connection,
    /// `Content-Length`
    ContentLength,
    /// `Content-Type`
    ContentType,
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
    /// `grpc-timeout`, of gRPC's protocol over HTTP/2
    GrpcTimeout,
    /// A hop-by-hop field that the gateway does not read.
    ///
    /// `Keep-Alive`, `Proxy-Connection`, `HTTP2-Settings`.
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
    /// Another field that says where a request came from, such as `X-Real-IP`.
    ///
    /// Also such a name with another sign in place of `-`: some origins read all alike, `_` those
    /// that have fields as variables of CGI, and `.` PHP.
    Origination,
    /// One of the three `X-RateLimit-…` fields that the gateway writes.
    XRateLimit,
}

impl FieldName {
    /// Recognizes a field's name.
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
            12 if is(b"content-type") => Self::ContentType,
            12 if is(b"grpc-timeout") => Self::GrpcTimeout,
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

    /// Returns whether the field is hop-by-hop and ends at this gateway.
    ///
    /// These are the fields of RFC 9110, section 7.6.1, and fields of older practice.
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

    /// Returns whether the field says where a request came from: only trusted peers may set it.
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

    /// Returns whether the field stays even if `Connection` lists it.
    ///
    /// Without such a field the message would mean something else.
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
        one.eq_ignore_ascii_case(other) || (*other == b'-' && !one.is_ascii_alphanumeric())
    };
    name.iter().zip(known).all(same)
}

/// The position of a part of a head in the bytes of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

impl Span {
    pub(super) fn new(start: usize, length: usize) -> Self {
        // Heads are far shorter: the configuration limits their size to a few MB.
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            start: narrow(start),
            length: narrow(length),
        }
    }

    /// Writes `part` behind `bytes`.
    pub(super) fn written(bytes: &mut Vec<u8>, part: &[u8]) -> Self {
        let start = bytes.len();
        bytes.extend_from_slice(part);
        Self::new(start, part.len())
    }

    /// Returns the span of `part`, which must be a slice of `whole`.
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

/// The position of a field in the bytes of its head.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name_start: u32,
    name_length: u16,
    known: FieldName,
    value: Span,
}

impl Field {
    /// Returns `None` if the name is too long for a field name.
    pub(super) fn new(name: Span, known: FieldName, value: Span) -> Option<Self> {
        Some(Self {
            name_start: name.start,
            name_length: name.length.try_into().ok()?,
            known,
            value,
        })
    }

    /// Writes a field behind `bytes`; `None` if its name is too long for a field name.
    pub(super) fn written(bytes: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Option<Self> {
        let known = FieldName::of(name);
        let (name, value) = (Span::written(bytes, name), Span::written(bytes, value));
        Self::new(name, known, value)
    }

    fn name(self) -> Span {
        Span {
            start: self.name_start,
            length: self.name_length.into(),
        }
    }
}

/// A table of fields, built before their number is known.
pub type FieldTable = SmallVec<[Field; 32]>;

/// Builds the table of a request's fields, and the bit set of the names in it.
///
/// Returns `None` if a name is too long, or if a line ends in a bare line feed: the parser accepts
/// that (RFC 9112, section 2.2), the gateway does not.
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

/// Fills the table with the parsed fields of `head`, whatever its line endings, and returns the bit
/// set of the names in it.
///
/// Returns `None` if a name is too long.
pub(super) fn fill_leniently(
    table: &mut FieldTable,
    head: &[u8],
    parsed: &[Header<'_>],
) -> Option<u32> {
    table.clear();
    let mut present = 0;
    for header in parsed {
        let field = field(head, header)?;
        present |= field.known.bit();
        table.push(field);
    }
    Some(present)
}

fn field(head: &[u8], header: &Header<'_>) -> Option<Field> {
    let name = header.name.as_bytes();
    let value = Span::of(head, header.value);
    Field::new(Span::of(head, name), FieldName::of(name), value)
}

/// Returns the bit set of the names in a table.
pub(super) fn present(table: &[Field]) -> u32 {
    table.iter().fold(0, |all, field| all | field.known.bit())
}

/// The fields of a head, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pub(super) head: &'a [u8],
    pub(super) table: &'a [Field],
    /// The bit set of the names that occur.
    pub(super) present: u32,
}

impl<'a> Fields<'a> {
    /// Returns every field: its known name, its name as sent, and its trimmed value.
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

    /// Returns whether the field occurs.
    #[must_use]
    pub fn has(self, known: FieldName) -> bool {
        self.present & known.bit() != 0
    }

    /// Returns the values of a well-known field, in order.
    #[must_use]
    pub fn all(self, known: FieldName) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let table = if self.has(known) { self.table } else { &[] };
        let fields = Self { table, ..self };
        fields
            .iter()
            .filter(move |(found, ..)| *found == known)
            .map(|(.., value)| value)
    }

    /// Returns the first value of a well-known field.
    #[must_use]
    pub fn first(self, known: FieldName) -> Option<&'a [u8]> {
        self.all(known).next()
    }

    /// Returns the values of the fields called `name`, in order, as they are written.
    pub fn named(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(_, found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(.., value)| value)
    }

    /// Returns the elements of a well-known list field, without the blanks around them.
    pub fn elements(self, known: FieldName) -> impl Iterator<Item = &'a [u8]> {
        self.all(known)
            .flat_map(|line| line.split(|byte| *byte == b','))
            .map(without_blanks)
    }

    /// Returns whether `Connection` lists this field, so that the field is not forwarded.
    #[must_use]
    pub fn names_away(self, known: FieldName, name: &[u8]) -> bool {
        self.has(FieldName::Connection)
            && !known.is_kept()
            && self
                .elements(FieldName::Connection)
                .any(|option| option.eq_ignore_ascii_case(name))
    }
}

/// Removes the blanks around a text (RFC 9110, section 5.5).
///
/// A form feed is not a blank, nor is a carriage return without its line feed.
#[must_use]
pub fn without_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The trailer fields of a body that may be forwarded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers(Vec<Line>);

/// A field's name and its value.
type Line = (Box<[u8]>, Box<[u8]>);

impl Trailers {
    /// Parses a trailer section, which ends with an empty line.
    ///
    /// Fields for framing, routing or authentication are left out (RFC 9110, section 6.5.1).
    /// Returns `None` if a field is malformed.
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

    /// Adds a field, unless it is not allowed as a trailer.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        if may_trail(name) {
            self.0.push((name.into(), value.into()));
        }
    }

    /// Returns the fields whose name `stays` accepts.
    #[must_use]
    pub fn filtered(&self, stays: impl Fn(&[u8]) -> bool) -> Self {
        let fields = self.0.iter().filter(|(name, _)| stays(name));
        Self(fields.cloned().collect())
    }

    /// Returns every field: its name and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Fields that change what a message means, so they must be known before its body.
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
