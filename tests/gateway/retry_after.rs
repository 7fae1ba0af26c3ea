//! Tests of an origin's Retry-After that is obeyed: no request is sent until it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Answer, Client, Gateway, MS, Origin, one_origin, side_by_side};

/// Starts a gateway where two keys alternate. `backoff`: fields of the back-off.
fn gated(origin: &Origin, backoff: &str) -> Gateway {
    let gate = format!(
        "rate = \"100r/s\"\nmax_in_flight = 1\nmax_queue = 100\nqueue = 100\nshare = \"key\"\n\
         [origins.app.backoff]\n{backoff}\n\
         [zones.key]\nkey = \"$arg_key\"\nrate = \"none\"\n"
    );
    Gateway::start(&one_origin(origin.address, "", &gate))
}

/// Starts an origin whose third response is `status` with `retry_after`. All others are 200.
fn refusing_once(status: u16, retry_after: impl Fn() -> String + Send + Sync + 'static) -> Origin {
    let count = Arc::new(AtomicUsize::new(0));
    Origin::answering(move |exchange| {
        if count.fetch_add(1, Ordering::SeqCst) != 2 {
            return exchange.reply(b"ok");
        }
        let value = retry_after();
        let head = format!("HTTP/1.1 {status} Later\r\nRetry-After: {value}\r\n");
        exchange.send(format!("{head}Content-Length: 0\r\n\r\n"))
    })
}

/// Sends ten requests of two keys. Returns the pause after the third at the origin.
fn pause(gateway: &Gateway, origin: &Origin) -> Duration {
    let ask = |nth: usize| gateway.ask(&format!("/?key={}", nth % 2));
    let mut clients: Vec<_> = (0..10).map(ask).collect();
    let answers: Vec<Answer> = clients.iter_mut().map(Client::answer).collect();
    let good = answers.iter().filter(|answer| answer.status == 200);
    assert_eq!(good.count(), 9, "the rest waits");
    let moments = origin.moments("/");
    moments[3] - moments[2]
}

fn count(gateway: &Gateway, name: &str, labels: &[(&str, &str)]) -> i64 {
    gateway.count(name, labels)
}

/// Formats the start of the second full second from now by `strftime`. Keeps any other text.
fn written(form: &str) -> String {
    let then = jiff::Timestamp::now() + Duration::from_secs(2);
    then.strftime(form).to_string()
}

#[test]
fn nothing_is_sent_after_the_first_429_or_503_with_retry_after_however_it_is_written() {
    let cases = [
        (429, "1"),
        (503, " 0.2\t"),
        (429, "%a, %d %b %Y %H:%M:%S GMT"),
        (429, "%A, %d-%b-%y %H:%M:%S GMT"),
        (503, "%a %b %e %H:%M:%S %Y"),
    ];
    side_by_side(cases, |(status, retry_after)| {
        let origin = refusing_once(status, move || written(retry_after));
        // 429 does not trigger back-off here, but its Retry-After is obeyed.
        let gateway = gated(&origin, "retry_after = true");
        let paused = pause(&gateway, &origin);
        let is_plausible = (990 * MS..20_000 * MS).contains(&paused);
        assert!(is_plausible, "{retry_after:?}: {paused:?}");
        let labels = [("origin", "app"), ("reason", "retry_after")];
        assert_eq!(count(&gateway, "drip_origin_backoffs_total", &labels), 1);
    });
}

#[test]
fn a_longer_retry_after_is_cut_to_max_pause() {
    let origin = refusing_once(429, || "3600".to_owned());
    let gateway = gated(&origin, "retry_after = true\nmax_pause = \"700ms\"");
    let paused = pause(&gateway, &origin);
    assert!((690 * MS..20_000 * MS).contains(&paused), "{paused:?}");
}

#[test]
fn a_retry_after_that_cannot_be_read_pauses_nothing_and_is_counted() {
    let invalid = "drip_origin_invalid_retry_after_total";
    for (retry_after, expected) in [("soon", 1), ("60s", 1), ("", 1), ("0", 0)] {
        let origin = refusing_once(429, move || retry_after.to_owned());
        let gateway = gated(&origin, "retry_after = true");
        let paused = pause(&gateway, &origin);
        assert!(paused < 20_000 * MS, "{retry_after:?}: {paused:?}");
        let counted = count(&gateway, invalid, &[("origin", "app")]);
        assert_eq!(counted, expected, "{retry_after:?}");
    }
}

#[test]
fn without_the_setting_or_with_another_status_one_retry_after_pauses_nothing() {
    for (status, backoff) in [
        (429, "on = [\"429\"]"),
        (500, "retry_after = true\non = [\"500\"]"),
        (429, "retry_after = true\nmode = \"shadow\""),
    ] {
        let origin = refusing_once(status, || "20".to_owned());
        let gateway = gated(&origin, backoff);
        let paused = pause(&gateway, &origin);
        assert!(paused < 20_000 * MS, "{backoff}: {paused:?}");
        assert_eq!(gateway.fetch("/?key=a").status, 200);
    }
}
