//! Names of fields that the gateway reads or replaces.
//!
//! *Origination* fields describe the client's own request, such as `X-Forwarded-For`.

/// Name of a field, as far as the gateway reads or replaces the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FieldName {
    /// Any other field: the gateway only forwards it.
    Other,
    /// `Authorization`
    Authorization,
    /// `WWW-Authenticate` or `Proxy-Authenticate`
    Challenge,
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
    /// A precondition, or a range: `If-Match`, `If-Range`, `Range` (RFC 9110, sections 13 and 14).
    ///
    /// Also such a name with another character instead of `-`. See [`Self::Origination`].
    Precondition,
    /// `Proxy-Authorization`
    ProxyAuthorization,
    /// `RateLimit`, or a field of its earlier drafts: `RateLimit-Limit`, `-Remaining`, `-Reset`
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
    /// Another field that describes the origination of a request, such as `X-Real-IP`.
    ///
    /// Also such a name with another character instead of `-`, because some origins read them
    /// alike: `_` where fields become CGI variables, and `.` in PHP.
    Origination,
    /// An `X-RateLimit-…` field. The gateway writes three of them; servers write many others.
    XRateLimit,
}

impl FieldName {
    /// Recognizes a field's name. Its length excludes most names.
    pub fn of(name: &[u8]) -> Self {
        match name.len() {
            2 if is(name, b"te") => Self::Te,
            4 if is(name, b"host") => Self::Host,
            4 if is(name, b"date") => Self::Date,
            5 if is(name, b"range") => Self::Precondition,
            6 if is(name, b"cookie") => Self::Cookie,
            6 if is(name, b"expect") => Self::Expect,
            7 if is(name, b"upgrade") => Self::Upgrade,
            7 if is(name, b"trailer") => Self::Trailer,
            8 if is_like(name, b"if-range") || is_like(name, b"if-match") => Self::Precondition,
            9 if is(name, b"forwarded") => Self::Forwarded,
            9 if is(name, b"ratelimit") => Self::RateLimit,
            9 if is_like(name, b"x-real-ip") => Self::Origination,
            10 if is(name, b"connection") => Self::Connection,
            10 if is(name, b"keep-alive") => Self::Hop,
            12 if is(name, b"content-type") => Self::ContentType,
            12 if is(name, b"grpc-timeout") => Self::GrpcTimeout,
            13 if is(name, b"authorization") => Self::Authorization,
            13 if is_like(name, b"if-none-match") => Self::Precondition,
            14 if is(name, b"content-length") => Self::ContentLength,
            14 if is(name, b"http2-settings") => Self::Hop,
            15 if is(name, b"x-forwarded-for") => Self::XForwardedFor,
            15 if is(name, b"ratelimit-limit") || is(name, b"ratelimit-reset") => Self::RateLimit,
            16 if is(name, b"x-forwarded-host") => Self::XForwardedHost,
            16 if is(name, b"ratelimit-policy") => Self::RateLimitPolicy,
            16 if is(name, b"proxy-connection") => Self::Hop,
            16 if is(name, b"www-authenticate") => Self::Challenge,
            17 if is(name, b"transfer-encoding") => Self::TransferEncoding,
            17 if is(name, b"x-forwarded-proto") => Self::XForwardedProto,
            17 if is_like(name, b"if-modified-since") => Self::Precondition,
            18 if is(name, b"proxy-authenticate") => Self::Challenge,
            19 if is(name, b"proxy-authorization") => Self::ProxyAuthorization,
            19 if is(name, b"ratelimit-remaining") => Self::RateLimit,
            19 if is_like(name, b"if-unmodified-since") => Self::Precondition,
            11.. if is_x_ratelimit(name) => Self::XRateLimit,
            13.. if is_like(&name[..12], b"x-forwarded-") => Self::Origination,
            _ => Self::Other,
        }
    }

    /// Returns whether the field is hop-by-hop, so that it is not forwarded.
    ///
    /// These are the fields of RFC 9110, section 7.6.1, and some older ones.
    pub(crate) fn is_hop_by_hop(self) -> bool {
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

    /// Returns whether the field describes the origination of a request.
    ///
    /// Only trusted peers may set such a field.
    pub(crate) fn describes_origination(self) -> bool {
        matches!(
            self,
            Self::Forwarded
                | Self::Origination
                | Self::XForwardedFor
                | Self::XForwardedHost
                | Self::XForwardedProto
        )
    }

    /// Returns whether the field is forwarded even if `Connection` lists it.
    ///
    /// Without such a field the message would have another meaning.
    pub(crate) fn is_always_forwarded(self) -> bool {
        matches!(
            self,
            Self::Authorization | Self::ContentLength | Self::Cookie | Self::Host
        ) || self.describes_origination()
    }

    /// Returns the bit of this name in a set of names. All names fit into 32 bits.
    pub(super) fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// Returns whether a name is `known`, ignoring case. `known` is in lower case.
fn is<const N: usize>(name: &[u8], known: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name) else {
        return false;
    };
    // The first byte distinguishes most names. The other bytes are compared without a branch each:
    // equal bytes have the difference 0.
    let difference = |(byte, known): (&u8, &u8)| byte.to_ascii_lowercase() ^ known;
    let mut differences = name.iter().zip(known).map(difference);
    differences.next() == Some(0) && differences.fold(0, |all, one| all | one) == 0
}

/// Returns whether a name is `X-RateLimit`, `X-Rate-Limit`, or begins with one of them and `-`.
fn is_x_ratelimit(name: &[u8]) -> bool {
    [&b"x-ratelimit"[..], b"x-rate-limit"].iter().any(|known| {
        let rest = strip_start(name, known);
        rest.is_some_and(|rest| matches!(rest, [] | [b'-', ..]))
    })
}

/// Returns the rest of a text that begins with `start`, ignoring case; `None` if it does not.
#[inline]
pub(crate) fn strip_start<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    let (beginning, rest) = text.split_at_checked(start.len())?;
    beginning.eq_ignore_ascii_case(start).then_some(rest)
}

/// Returns whether a name equals `known`, up to the length of the shorter one.
///
/// Any character that is not alphanumeric counts as `-`, because some origins read all of them
/// alike. `known` is in lower case.
pub(crate) fn is_like(name: &[u8], known: &[u8]) -> bool {
    let is_same = |(byte, known): (&u8, &u8)| {
        byte.eq_ignore_ascii_case(known) || (*known == b'-' && !byte.is_ascii_alphanumeric())
    };
    name.iter().zip(known).all(is_same)
}
