//! Incidents of gates: held permits, crowding keys, and requests that get no permit in time.

use std::thread;
use std::time::Duration;

use super::clients::{Background, fetch, get, one_after_another, slow_reader, slow_upload, steady};
use super::driver::{Check, Incident, RULE, Rule, pauses};
use super::servers::{Server, app};
use crate::support::{Exchange, Gateway, Origin, now};

const UPLOADS: Rule = Rule {
    says: &[
        r"127\.0\.0\.9",
        r"\b(2|two|both)\b",
        "upload|send|bod",
        "/upload",
        r"\b\d+(\.\d)? s\b",
    ],
    helps: &["request_buffer|min_body_rate"],
    never: &[
        "raise .*max_in_flight",
        "app (is slow|hangs|answers nothing|has answered nothing|does not answer|takes)",
    ],
    ..RULE
};

const READERS: Rule = Rule {
    says: &[
        r"127\.0\.0\.9",
        r"\b(2|two|both)\b",
        "read",
        "/file",
        r"\b\d+(\.\d)? s\b",
    ],
    helps: &["response_buffer"],
    ..UPLOADS
};

const FEW: Duration = Duration::from_millis(200);

/// Plays two slow clients that hold all permits of a gate.
fn hold_permits(rule: &Rule, slow: impl Fn(&Gateway, [u8; 4]) -> Background) {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let is_file = exchange.target() == "/file";
        exchange.body()?;
        exchange.reply(&vec![b'x'; if is_file { 8 << 20 } else { 2 }])
    });
    let route = |path| format!("[[routes]]\npath = \"{path}\"\norigin = \"app\"\n");
    let routes = ["/upload", "/file"].map(route).concat();
    let gateway = Gateway::start(&app(&[origin.address], "max_in_flight = 2", &routes));
    let _steady = steady(&gateway, FEW, |_| get("/"));
    let mut both = None;
    let begin = || both = Some([(); 2].map(|()| slow(&gateway, [127, 0, 0, 9])));
    let mut incident = Incident::begin(&gateway, rule, begin);
    incident.reported();
    incident.end(|| both = None);
}

#[test]
fn uploads_that_hold_all_permits_are_reported_with_their_client_and_route() {
    hold_permits(&UPLOADS, |gateway, from| {
        slow_upload(gateway, from, "/upload")
    });
}

#[test]
fn slow_readers_that_hold_all_permits_are_reported_with_their_client_and_route() {
    hold_permits(&READERS, |gateway, from| {
        slow_reader(gateway, from, "/file")
    });
}

const CRAWLER: Rule = Rule {
    about: Some("app"),
    says: &[
        r"127\.0\.9\.0/24",
        r"\b([5-9]\d|[12]\d\d) (new |client )*addresses",
        "new|addresses",
    ],
    helps: &["share", "new_keys|prefix|network"],
    never: &[r"127\.0\.9\.[1-9]"],
    ..RULE
};

#[test]
fn a_crawler_with_many_addresses_is_reported_by_its_network() {
    let origin = Origin::answering(|exchange| {
        thread::sleep(Duration::from_millis(50));
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&app(&[origin.address], "max_in_flight = 4", ""));
    let nth_of = |network: u8, nth: usize| {
        let last = u8::try_from(nth % 250 + 1).expect("less than 256");
        get("/").from([127, 0, network, last])
    };
    let _others = steady(&gateway, FEW, move |nth| nth_of(2, nth % 5));
    let mut crawler = Vec::new();
    let mut incident = Incident::begin(&gateway, &CRAWLER, || {
        crawler = one_after_another(&gateway, 250, |nth| nth_of(9, nth));
    });
    incident.reported();
    incident.end(|| drop(crawler));
}

const TOO_LONG: Rule = Rule {
    about: Some("app"),
    helps: &["`?queue_timeout", r"`queue\b"],
    check: Some(Check {
        status: 0,
        parts: &["queue", r"\b25\b", "queue_timeout"],
    }),
    ..RULE
};

#[test]
fn who_cannot_leave_the_queue_within_its_timeout_is_rejected_at_once() {
    let server = Server::start();
    let gate = "rate = \"5r/s\"\nshare = \"per_key\"\nqueue = 30";
    let zone = "limits = [{ zone = \"per_key\", burst = 1000, nodelay = true }]\n\n\
                [zones.per_key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"";
    let gateway = Gateway::start(&app(&[server.address()], gate, zone));
    let to = gateway.address();
    let mut clients = Vec::new();
    let mut incident = Incident::begin(&gateway, &TOO_LONG, || {
        let client = move || {
            let began = now();
            let answer = fetch(to, &get("/?key=a")).expect("an answer");
            (began.elapsed(), answer)
        };
        clients.extend((0..200).map(|_| thread::spawn(client)));
    });
    let began = now();
    incident.reported();
    let answers = clients.into_iter().map(|it| it.join().expect("no panic"));
    let answers: Vec<_> = answers.collect();
    let limit = Duration::from_secs(1) + pauses(began);
    for (took, answer) in answers.iter().filter(|(_, it)| it.contains(" 503 ")) {
        assert!(*took <= limit, "after {took:?} in the queue: {answer}");
        let fields = answer.to_ascii_lowercase();
        assert!(fields.contains("\r\nretry-after: "), "{answer}");
    }
    let in_time = Duration::from_secs(5);
    let passed = answers.iter().filter(|(_, it)| it.contains(" 200 "));
    let passed = passed.filter(|(took, _)| *took <= in_time).count();
    assert!(passed <= 26, "{passed} in {in_time:?} at 5 a second");
    incident.end(|| ());
}
