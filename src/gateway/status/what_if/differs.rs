use crate::status::headline::words::{count, part, percent};
use crate::status::views::{Happened, Plain, Replayed};

/// From this difference of the rejected shares on, the replay is not what happened.
const MIN_DIFFERENCE: f64 = 0.05;
/// Of fewer requests, a share says little.
const MIN_REQUESTS: u64 = 20;

/// Where the replay with the settings in force is not what happened, and why.
pub(crate) fn differs(now: &Replayed, happened: &Happened) -> Option<Plain> {
    let more = now.share_rejected - happened.share_rejected;
    if happened.requests < MIN_REQUESTS || more.abs() < MIN_DIFFERENCE {
        return None;
    }
    // Each client that leaves gives its place to another one, which a replay may reject.
    let left = part(happened.cancelled, happened.requests);
    let why = if more > 0.0 && left >= more / 2.0 {
        format!(
            "{} left before their turn, which the replay does not know",
            count(happened.cancelled, "client")
        )
    } else {
        "the replay leaves something out, or numbers changed within the span".to_owned()
    };
    Some(Plain::new(&format!(
        "In this span {} were rejected, not {}: {why}.",
        percent(happened.share_rejected),
        percent(now.share_rejected)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(replayed: f64, requests: u64, rejected: u64, cancelled: u64) -> Option<String> {
        let now = Replayed {
            share_rejected: replayed,
            ..Replayed::default()
        };
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let happened = Happened {
            requests,
            rejected,
            cancelled,
            share_rejected: rejected as f64 / requests as f64,
        };
        differs(&now, &happened).map(|text| text.to_string())
    }

    #[test]
    fn a_replay_that_is_not_what_happened_says_so_and_why() {
        let left = "In this span 0 % were rejected, not 44 %: 1,329 clients left before their turn, which the replay does not know.";
        assert_eq!(told(0.44, 2622, 0, 1329).as_deref(), Some(left));
        let text = told(0.1, 1000, 300, 500).expect("it differs");
        assert!(text.contains("30 % were rejected, not 10 %"), "{text}");
        assert!(text.contains("leaves something out"), "{text}");
        let text = told(0.5, 1000, 0, 10).expect("it differs");
        assert!(
            !text.contains("left before"),
            "ten do not explain it: {text}"
        );
        assert_eq!(told(0.32, 1000, 300, 500), None);
        assert_eq!(told(0.44, 10, 0, 5), None);
    }
}
