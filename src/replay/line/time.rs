//! The times of access logs.

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::Offset;

use crate::limit::Moment;
use jiff::Timestamp;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// nginx's `$time_local`, such as `21/Nov/2026:03:33:47 +0000`, and how far its clock is from UTC, in seconds.
pub(super) fn local(text: &str) -> Option<(Moment, i32)> {
    plain(text.as_bytes()).or_else(|| {
        let read = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?;
        let offset = read.offset()?;
        Some((moment(read.to_timestamp().ok()?), offset.seconds()))
    })
}

/// The same where each part has the width that nginx gives it, which takes a tenth of the time.
fn plain(text: &[u8]) -> Option<(Moment, i32)> {
    let [
        d1,
        d2,
        b'/',
        m1,
        m2,
        m3,
        b'/',
        y @ ..,
        b' ',
        sign,
        oh1,
        oh2,
        om1,
        om2,
    ] = text
    else {
        return None;
    };
    let [y1, y2, y3, y4, b':', h1, h2, b':', mi1, mi2, b':', s1, s2] = y else {
        return None;
    };
    let month = MONTHS.iter().position(|name| **name == [*m1, *m2, *m3])?;
    let two = |tens: u8, ones: u8| {
        let both = tens.is_ascii_digit() && ones.is_ascii_digit();
        both.then(|| i8::try_from((tens - b'0') * 10 + (ones - b'0')).unwrap_or(0))
    };
    let year = i16::from(two(*y1, *y2)?) * 100 + i16::from(two(*y3, *y4)?);
    let month = i8::try_from(month + 1).ok()?;
    let (hour, minute, second) = (two(*h1, *h2)?, two(*mi1, *mi2)?, two(*s1, *s2)?);
    let date = DateTime::new(year, month, two(*d1, *d2)?, hour, minute, second, 0).ok()?;
    let ahead = i32::from(two(*oh1, *oh2)?) * 3600 + i32::from(two(*om1, *om2)?) * 60;
    let ahead = match sign {
        b'+' => ahead,
        b'-' => -ahead,
        _ => return None,
    };
    let offset = Offset::from_seconds(ahead).ok()?;
    Some((moment(offset.to_timestamp(date).ok()?), ahead))
}

pub(super) fn moment(time: Timestamp) -> Moment {
    Moment::from_nanos(u64::try_from(time.as_nanosecond()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_is_the_long_way() {
        for text in [
            "21/Nov/2026:03:33:47 +0000",
            "29/Feb/2024:23:59:59 -1130",
            "01/Jan/1970:00:00:00 +0100",
            "31/Dec/1999:12:00:00 +1400",
        ] {
            let read = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).unwrap();
            let long = moment(read.to_timestamp().unwrap());
            let ahead = read.offset().unwrap().seconds();
            assert_eq!(plain(text.as_bytes()), Some((long, ahead)), "{text}");
        }
        for text in [
            "29/Feb/2023:00:00:00 +0000",
            "21/Nov/2026:24:00:00 +0000",
            "21/Nov/2026:03:33:47 *0000",
            "21/nov/2026:03:33:47 +0000",
            "2x/Nov/2026:03:33:47 +0000",
            "21/Nov/2026:03:33:47 +9900",
            "21/Nov/2026:03:33:47",
            "",
        ] {
            assert_eq!(plain(text.as_bytes()), None, "{text}");
        }
    }
}
