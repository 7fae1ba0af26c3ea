//! Messages of gRPC's health protocol, `grpc.health.v1`.
//!
//! Specification: <https://github.com/grpc/grpc/blob/master/doc/health-checking.md>.

use http::HeaderMap;

/// Path of the health method.
pub(super) const GRPC_CHECK: &str = "/grpc.health.v1.Health/Check";

/// Number of bytes before each message: a compression flag, and the length.
const PREFIX: usize = 5;
/// Most significant bit of each byte of a varint but the last.
const MORE: u8 = 0x80;

/// Tag of `service` in a request: field 1, bytes with a length.
const SERVICE_FIELD: u8 = 0x0a;

/// Tag of `status` in a response: field 1, a varint.
const STATUS_FIELD: u8 = 0x08;

/// Encodes a `HealthCheckRequest` for a service, with its prefix.
pub(super) fn request(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    // A field with its default value is left out.
    if !service.is_empty() {
        message.push(SERVICE_FIELD);
        // The length is a varint: seven bits a byte, the lowest first.
        let mut length = service.len();
        while length >= 0x80 {
            message.push(low_bits(length) | MORE);
            length >>= 7;
        }
        message.push(low_bits(length));
        message.extend(service.as_bytes());
    }
    let size = u32::try_from(message.len()).unwrap_or_default();
    [&[0][..], &size.to_be_bytes(), &message].concat()
}

/// Returns the lowest seven bits.
fn low_bits(length: usize) -> u8 {
    u8::try_from(length & 0x7f).unwrap_or_default()
}

/// Returns the outcome of the call, from `grpc-status`.
pub(super) fn call_status(fields: &HeaderMap) -> Option<u32> {
    fields.get("grpc-status")?.to_str().ok()?.parse().ok()
}

/// Returns the verdict on the server, from the outcome of the call and its message.
pub(super) fn verdict(status: u32, body: &[u8]) -> Result<String, String> {
    match status {
        0 => {}
        5 => return Err("it does not know the service (grpc-status 5)".to_owned()),
        12 => return Err("it has no grpc.health.v1.Health (grpc-status 12)".to_owned()),
        other => return Err(format!("it answered grpc-status {other}")),
    }
    match serving_status(body) {
        Some(1) => Ok("it is SERVING".to_owned()),
        Some(2) => Err("it is NOT_SERVING".to_owned()),
        Some(3) => Err("it does not know the service (SERVICE_UNKNOWN)".to_owned()),
        Some(_) => Err("its status is UNKNOWN".to_owned()),
        None => Err("its answer is not a HealthCheckResponse".to_owned()),
    }
}

/// Returns field 1 of a `HealthCheckResponse`, an enum.
fn serving_status(body: &[u8]) -> Option<u8> {
    let (prefix, message) = body.split_at_checked(PREFIX)?;
    let [compressed, size @ ..] = prefix else {
        return None;
    };
    let size = u32::from_be_bytes(size.try_into().ok()?);
    if *compressed != 0 || u32::try_from(message.len()) != Ok(size) {
        return None;
    }
    match message {
        // The status has its default value, `UNKNOWN`.
        [] => Some(0),
        // A varint of one byte: all statuses are below 128. Later fields are ignored.
        [STATUS_FIELD, status @ ..MORE, ..] => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_service() {
        assert_eq!(request(""), [0, 0, 0, 0, 0]);
        assert_eq!(request("a.B"), *b"\0\0\0\0\x05\x0a\x03a.B");
        // Length of the service's name, and the bytes before the name.
        for (length, start) in [
            (127, &[0, 0, 0, 0, 129, 0x0a, 0x7f][..]),
            (128, &[0, 0, 0, 0, 131, 0x0a, 0x80, 1]),
            (200, &[0, 0, 0, 0, 203, 0x0a, 0xc8, 1]),
            (300, &[0, 0, 0, 1, 47, 0x0a, 0xac, 2]),
            (20_000, &[0, 0, 0, 0x4e, 0x24, 0x0a, 0xa0, 0x9c, 1]),
        ] {
            let name = "a".repeat(length);
            let expected = [start, name.as_bytes()].concat();
            assert_eq!(request(&name), expected, "{length}");
        }
    }

    #[test]
    fn only_a_serving_server_is_healthy() {
        assert!(verdict(0, &[0, 0, 0, 0, 2, 8, 1]).is_ok());
        // Status of the call, and body: prefix, and field 1 with its value.
        for (status, body) in [
            (0, &[0, 0, 0, 0, 2, 8, 2][..]),
            (0, &[0, 0, 0, 0, 2, 8, 3]),
            (0, &[0, 0, 0, 0, 0]),
            (0, &[0, 0, 0, 0, 2, 8]),
            (0, &[1, 0, 0, 0, 2, 8, 1]),
            (0, &[0, 0, 0]),
            (0, &[]),
            (12, &[0, 0, 0, 0, 2, 8, 1]),
            (5, &[]),
        ] {
            assert!(verdict(status, body).is_err(), "{status} {body:?}");
        }
    }
}
