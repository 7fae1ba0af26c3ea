//! The two facts of a certificate that its TLS library does not tell: its version and its times.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

/// The time in which a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its `notBefore`.
    pub from: i64,
    /// Its `notAfter`.
    pub to: i64,
}

/// Tags of DER (X.690).
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0]`, which is around the version.
const VERSION: u8 = 0xA0;

/// The version of a certificate and its validity; `None` if it is no certificate (RFC 5280, 4.1).
pub(super) fn read(certificate: &[u8]) -> Option<(u8, Validity)> {
    let mut rest = certificate;
    let mut certificate = expect(&mut rest, SEQUENCE)?;
    let mut fields = expect(&mut certificate, SEQUENCE)?;
    let mut version = 1;
    if fields.first() == Some(&VERSION) {
        let mut inside = expect(&mut fields, VERSION)?;
        let [number] = expect(&mut inside, INTEGER)? else {
            return None;
        };
        version = number.checked_add(1)?;
    }
    let _serial = expect(&mut fields, INTEGER)?;
    let _algorithm = expect(&mut fields, SEQUENCE)?;
    let _issuer = expect(&mut fields, SEQUENCE)?;
    let mut times = expect(&mut fields, SEQUENCE)?;
    let validity = Validity {
        from: time(&mut times)?,
        to: time(&mut times)?,
    };
    Some((version, validity))
}

/// Takes the next value, which must have this tag. Returns its content.
fn expect<'d>(rest: &mut &'d [u8], tag: u8) -> Option<&'d [u8]> {
    next(rest).filter(|found| found.0 == tag).map(|it| it.1)
}

/// Takes the next value. Returns its tag and its content.
fn next<'d>(rest: &mut &'d [u8]) -> Option<(u8, &'d [u8])> {
    let (tag, behind) = rest.split_first()?;
    let (first, behind) = behind.split_first()?;
    let (length, behind) = match usize::from(*first) {
        short @ ..0x80 => (short, behind),
        long => {
            let (bytes, behind) = behind.split_at_checked(long - 0x80)?;
            let length = bytes.iter().try_fold(0_usize, |sum, byte| {
                sum.checked_mul(256)?.checked_add(usize::from(*byte))
            });
            (length?, behind)
        }
    };
    let (content, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    Some((*tag, content))
}

/// Takes a time: `YYMMDDHHMMSSZ` until 2049, `YYYYMMDDHHMMSSZ` after (RFC 5280, 4.1.2.5).
fn time(rest: &mut &[u8]) -> Option<i64> {
    let (tag, content) = next(rest)?;
    let digits = str::from_utf8(content).ok()?.strip_suffix('Z')?;
    let (year, digits) = match tag {
        UTC_TIME => {
            let (year, digits) = digits.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, digits)
        }
        GENERALIZED_TIME => {
            let (year, digits) = digits.split_at_checked(4)?;
            (year.parse().ok()?, digits)
        }
        _ => return None,
    };
    let part = |nth: usize| -> Option<i8> { digits.get(nth * 2..nth * 2 + 2)?.parse().ok() };
    let date = Date::new(year, part(0)?, part(1)?).ok()?;
    let time = Time::new(part(2)?, part(3)?, part(4)?, 0).ok()?;
    let at = DateTime::from_parts(date, time);
    Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of a certificate up to its times, with this in front of the serial number.
    fn certificate(version: &[u8], times: &[u8]) -> Vec<u8> {
        let wrap = |inside: &[u8]| {
            let length = u8::try_from(inside.len()).unwrap();
            [&[SEQUENCE, 0x81, length], inside].concat()
        };
        let fields = [
            version,
            &[INTEGER, 1, 7, SEQUENCE, 0, SEQUENCE, 0],
            &wrap(times),
        ];
        wrap(&wrap(&fields.concat()))
    }

    const THIRD: &[u8] = &[VERSION, 3, INTEGER, 1, 2];
    const TIMES: &[u8] = b"\x17\x0d700101000001Z\x18\x0f20500101000000Z";

    #[test]
    fn version_and_times_are_read() {
        let validity = Validity {
            from: 1,
            to: 2_524_608_000,
        };
        let read_of = |version, times| read(&certificate(version, times));
        assert_eq!(read_of(THIRD, TIMES), Some((3, validity)));
        assert_eq!(read_of(&[], TIMES), Some((1, validity)));
        let last = b"\x17\x0d491231235959Z\x17\x0d500101000000Z";
        let (_, found) = read_of(THIRD, last).unwrap();
        assert_eq!((found.from, found.to), (2_524_607_999, -631_152_000));
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let whole = certificate(THIRD, TIMES);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        for times in [
            &b"\x17\x0d701301000001Z\x17\x0d700101000001Z"[..],
            b"\x17\x0d7001010000010\x17\x0d700101000001Z",
            b"\x04\x0d700101000001Z\x17\x0d700101000001Z",
            b"\x17\x89\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(read(&certificate(THIRD, times)), None, "{times:?}");
        }
    }
}
