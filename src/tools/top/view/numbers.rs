//! Formats numbers for people.

use std::time::Duration;

use jiff::Timestamp;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A wait with about three digits.
pub(in crate::tools::top) fn wait(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.2}s"),
        s if s < 100.0 => format!("{s:.1}s"),
        s => format!("{s:.0}s"),
    }
}

/// An elapsed time.
pub(in crate::tools::top) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A timestamp to the second. A text that is not a timestamp is returned unchanged.
pub(in crate::tools::top) fn moment(text: &str) -> String {
    let parsed = text.parse::<Timestamp>().ok();
    parsed.map_or_else(
        || text.to_owned(),
        |time| time.strftime("%F %T UTC").to_string(),
    )
}

/// The time of day of a Unix time in seconds; `None` if there is no such time.
pub(in crate::tools::top) fn clock(seconds: f64) -> Option<String> {
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    let time = i64::try_from(time.as_secs()).ok()?;
    let time = Timestamp::from_second(time).ok()?;
    Some(time.strftime("%T UTC").to_string())
}

/// A share in percent; `–` if `whole` is 0.
#[allow(clippy::cast_precision_loss)]
pub(in crate::tools::top) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}

/// A sparkline of the last `seconds` in `width` characters.
///
/// Each character shows the highest value of its part; zero is a space.
pub(super) fn sparkline(values: &[u64], width: usize, seconds: usize) -> String {
    let each = seconds.div_ceil(width.max(1)).max(1);
    let parts = values.rchunks(each).take(width);
    let mut highs: Vec<u64> = parts
        .map(|part| part.iter().copied().max().unwrap_or_default())
        .collect();
    highs.reverse();
    let top = highs.iter().copied().max().unwrap_or_default().max(1);
    let bar = |high: u64| match high {
        0 => ' ',
        _ => BARS[usize::try_from((u128::from(high) * 8).div_ceil(top.into()) - 1).unwrap_or(7)],
    };
    let bars: String = highs.into_iter().map(bar).collect();
    format!("{bars:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_read_them() {
        assert_eq!(wait(0.314), "0.31s");
        assert_eq!(wait(12.34), "12.3s");
        assert_eq!(wait(1234.5), "1234s");
        let spans = [5, 65, 3_725].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["5s", "1m05s", "1h02m"]);
        assert_eq!(
            moment("2026-11-21T06:00:00.123Z"),
            "2026-11-21 06:00:00 UTC"
        );
        assert_eq!(moment("soon"), "soon");
        assert_eq!((share(1, 3).as_str(), share(0, 0).as_str()), ("33.3%", "–"));
    }

    #[test]
    fn a_sparkline_shows_the_highest_of_each_part() {
        assert_eq!(sparkline(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 9, 9), " ▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[9, 0, 0, 0, 0, 1], 3, 6), "█ ▁");
        assert_eq!(sparkline(&[5], 4, 60), "   █");
        assert_eq!(sparkline(&[], 4, 60), "    ");
        assert_eq!(sparkline(&[5], 0, 60), "");
        assert_eq!(sparkline(&[u64::MAX, 1], 2, 2), "█▁");
    }
}
