//! What requests share, in words.

use super::numbers::wait;
use crate::status::views::SharedAnswers;
use crate::tools::top::model::SharedNow;

const UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];

/// What was asked and sent, such as `120 r/s asked, 18 r/s sent: 85 % shared, waits p99 0.21s`.
pub(in crate::tools::top) fn asked(now: &SharedNow) -> String {
    let Some(share) = share(now) else {
        return "no requests to share".to_owned();
    };
    let waits = now.wait_p99.map(|it| format!(", waits p99 {}", wait(it)));
    format!(
        "{} r/s asked, {} r/s sent: {share} shared{}",
        pace(now.asked),
        pace(now.sent),
        waits.unwrap_or_default()
    )
}

/// What of the asked needed no request to the origin, such as `85 %`; `None` without requests.
pub(in crate::tools::top) fn share(now: &SharedNow) -> Option<String> {
    let part = (1.0 - now.sent / now.asked).max(0.0);
    let text = match part * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "<1 %".to_owned(),
        percent if percent > 99.0 && percent < 100.0 => ">99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    };
    (now.asked > 0.0).then_some(text)
}

/// What answers take, such as `3.1 MB of 64 MB kept`.
pub(in crate::tools::top) fn kept(answers: &SharedAnswers) -> String {
    let (bytes, most) = (size(answers.bytes), size(answers.max_bytes));
    format!("{bytes} of {most} kept")
}

/// So many a second.
pub(in crate::tools::top) fn pace(a_second: f64) -> String {
    let text = format!("{a_second:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None if a_second >= 10.0 => format!("{a_second:.0}"),
        None => text,
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
fn size(bytes: u64) -> String {
    let unit = UNITS.into_iter().find(|(_, size)| bytes >= *size);
    let (name, size) = unit.unwrap_or(("B", 1));
    format!("{} {name}", pace(bytes as f64 / size as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_told_in_a_few_words() {
        let mut now = SharedNow {
            asked: 120.0,
            sent: 18.04,
            ..SharedNow::default()
        };
        assert_eq!(asked(&now), "120 r/s asked, 18 r/s sent: 85 % shared");
        now.wait_p99 = Some(0.21);
        (now.asked, now.sent) = (2000.0, 0.2);
        let told = asked(&now);
        let expected = "2000 r/s asked, 0.2 r/s sent: >99 % shared, waits p99 0.21s";
        assert_eq!(told, expected);
        (now.asked, now.sent) = (1.0, 2.0);
        assert_eq!(share(&now).as_deref(), Some("0 %"));
        now.asked = 0.0;
        assert_eq!(asked(&now), "no requests to share");
    }

    #[test]
    fn what_is_kept_is_in_the_units_of_the_file() {
        let told = |bytes| {
            kept(&SharedAnswers {
                bytes,
                max_bytes: 64 << 20,
                ..SharedAnswers::default()
            })
        };
        assert_eq!(told(0), "0 B of 64 MB kept");
        assert_eq!(told(1536), "1.5 KB of 64 MB kept");
        assert_eq!(told(3_250_586), "3.1 MB of 64 MB kept");
        assert_eq!(told(60 << 20), "60 MB of 64 MB kept");
    }
}
