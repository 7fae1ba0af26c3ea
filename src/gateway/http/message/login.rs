//! Logins that belong to a connection: NTLM and Negotiate (RFC 4559, section 6).
//!
//! Credentials of other schemes belong to the request that carries them. A connection to an origin
//! with such a login is reserved for its client.

use super::field_name::{FieldName, strip_start};
use super::fields::Fields;

/// Authentication schemes that log in the connection, not the request. In lower case.
const SCHEMES: [&[u8]; 2] = [b"ntlm", b"negotiate"];

/// Fields with credentials or challenges.
const FIELDS: [FieldName; 3] = [
    FieldName::Authorization,
    FieldName::ProxyAuthorization,
    FieldName::Challenge,
];

/// Returns whether a head has credentials or challenges that belong to its connection.
///
/// Also returns true for a longer scheme that begins with one of [`SCHEMES`], and for a scheme
/// inside quoted text: reserving a connection for its client without need does no harm.
#[inline]
pub(crate) fn logs_in_connection(fields: Fields<'_>) -> bool {
    let names_scheme = |element: &[u8]| {
        let mut schemes = SCHEMES.iter();
        schemes.any(|scheme| strip_start(element, scheme).is_some())
    };
    // Most heads have none of these fields.
    let mut known = FIELDS.into_iter().filter(|known| fields.has(*known));
    known.any(|known| fields.elements(known).any(names_scheme))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::message::test_heads::request;

    #[test]
    fn logins_by_ntlm_and_negotiate_belong_to_the_connection_and_others_do_not() {
        for (expected, name, values) in [
            (true, "Authorization", "NTLM TlRMTVNTUAAB|negotiate YII="),
            (true, "proxy-authorization", "NTLM\tTlRM"),
            (
                true,
                "WWW-Authenticate",
                "Negotiate|Basic realm=\"a, b\", ntlm",
            ),
            (true, "Proxy-Authenticate", ", ,NTLM"),
            (
                false,
                "Authorization",
                "Basic bnRsbTpudGxt|Bearer NTLM|NTL|",
            ),
            (false, "WWW-Authenticate", "Digest realm=\"ntlm\""),
            (false, "X-Authorization", "NTLM TlRM"),
        ] {
            for value in values.split('|') {
                let head = request(&[(name, value.as_bytes())]);
                let found = logs_in_connection(head.fields());
                assert_eq!(found, expected, "{name}: {value}");
            }
        }
    }
}
