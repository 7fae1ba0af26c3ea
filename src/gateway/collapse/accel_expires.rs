//! `X-Accel-Expires` of a response: how long nginx keeps it, and so a shared answer is kept.

use std::time::Duration;

use limit::Moment;

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
