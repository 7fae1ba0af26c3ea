//! Gates: who holds permits, who crowds them, and requests that cannot get one in time.

use std::thread;
use std::time::Duration;

use super::clients::{
    PATIENT, STEADY, fetch, get, one_after_another, slow_reader, slow_upload, steady,
};
use super::driver::{Check, Incident, RULE, Rule, Severity, pauses};
use super::servers::{Server, app};
use crate::support::{Exchange, Gateway, Origin, now};

const FULL: Rule = Rule {
    severity: Severity::Bad,
    about: Some("app"),
    says: &[
        "the gate of app rejects ",
        "as many requests wait as `max_queue` allows",
    ],
    helps: &["raise its `max_in_flight`, which is 4; otherwise limit clients earlier"],
    ..RULE
};

#[test]
fn a_full_gate_is_reported_with_the_part_that_it_rejects() {
    let origin = Origin::answering(|exchange| {
        thread::sleep(Duration::from_millis(50));
        exchange.reply(b"ok")
    });
    // Four permits give 80 answers a second: enough for the steady traffic of 25.
    let gate = "max_in_flight = 4\nmax_queue = 20";
    let gateway = Gateway::start(&app(&[origin.address], gate, ""));
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let mut flood = None;
    let mut incident = Incident::begin(&gateway, &FULL, || {
        flood = Some(steady(&gateway, Duration::from_millis(5), |_| get("/")));
    });
    incident.reported();
    incident.end(|| drop(flood));
}

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

const FEW: Duration = Duration::from_millis(200);
const SLOW_CLIENT: [u8; 4] = [127, 0, 0, 9];

/// A gateway with two permits, and routes for `/upload` and `/file`.
fn two_permits(origin: &Origin) -> Gateway {
    let routes = "[[routes]]\npath = \"/upload\"\norigin = \"app\"\n\
                  [[routes]]\npath = \"/file\"\norigin = \"app\"";
    Gateway::start(&app(&[origin.address], "max_in_flight = 2", routes))
}

#[test]
fn uploads_that_hold_all_permits_are_reported_with_their_client_and_route() {
    let server = Server::start();
    let gateway = two_permits(&server.origin);
    let _steady = steady(&gateway, FEW, |_| get("/"));
    let mut uploads = None;
    let upload = || slow_upload(&gateway, SLOW_CLIENT, "/upload");
    let mut incident = Incident::begin(&gateway, &UPLOADS, || {
        uploads = Some([upload(), upload()]);
    });
    incident.reported();
    incident.end(|| drop(uploads));
}

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

#[test]
fn slow_readers_that_hold_all_permits_are_reported_with_their_client_and_route() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let is_file = exchange.target() == "/file";
        exchange.reply(&vec![b'x'; if is_file { 8 << 20 } else { 2 }])
    });
    let gateway = two_permits(&origin);
    let _steady = steady(&gateway, FEW, |_| get("/"));
    let mut readers = None;
    let reader = || slow_reader(&gateway, SLOW_CLIENT, "/file");
    let mut incident = Incident::begin(&gateway, &READERS, || {
        readers = Some([reader(), reader()]);
    });
    incident.reported();
    incident.end(|| drop(readers));
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
            let answer = fetch(to, &get("/?key=a"), PATIENT).expect("an answer");
            (began.elapsed(), answer)
        };
        clients.extend((0..200).map(|_| thread::spawn(client)));
    });
    let began = now();
    incident.reported();
    let answers = clients.into_iter().map(|it| it.join().expect("no panic"));
    let answers: Vec<_> = answers.collect();
    let pauses = pauses(began);
    let limit = Duration::from_secs(1) + pauses;
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
