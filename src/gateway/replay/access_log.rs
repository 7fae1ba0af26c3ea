//! Test: `drip simulate` reads back the lines that the access log writes.

use std::time::Duration;

use limit::Moment;
use proptest::prelude::*;
use testing::{bytes, config, text as any_text};

use super::Form;
use crate::observe::access::{Entry, Limited, Line, json, text};
use crate::observe::escape::escape;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::LimitStatus;

proptest! {
    #![proptest_config(config())]

    /// A logged entry is one line, and `drip simulate` reads the same values back from it.
    ///
    /// Holds for any bytes that clients send.
    #[test]
    fn every_line_reads_back(
        nanos in 0..2_000_000_000_000_000_000u64,
        client in any::<std::net::IpAddr>(),
        target in any_text("paths"),
        key in bytes("bytes"),
        said in any_text("bytes"),
    ) {
        let target = format!("/{}", target.replace([' ', '?', '#'], ""));
        let entry = Entry {
            time: Moment::from_nanos(nanos),
            client: Some(client),
            line: Some(Line { method: "GET", target: target.as_bytes().into(), protocol: "HTTP/1.1" }),
            request_id: Some("key=\"bob\"\\"),
            status: 200,
            bytes: 66,
            route: Some("/".to_owned()),
            origin: Some("app"),
            server: None,
            shared: None,
            is_refused: false,
            limited: Some(Limited { zone: "z", key: &key, names: KeyNames::at_gate(None), status: LimitStatus::Passed, excess: None, plan: None, is_flood: false }),
            planned: None,
            queue: None,
            origin_queue: None,
            origin_rejected: None,
            class: None,
            cost: None,
            origin_took: None,
            duration: Duration::ZERO,
            referer: None,
            user_agent: Some(said.as_str().into()),
        };
        for line in [text(&entry), json(&entry)] {
            prop_assert!(!line.contains(['\n', '\r']), "{}", line);
            let form = Form::detect(&line);
            let read = form.read(&line).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let recorded = read.recorded.unwrap();
            prop_assert_eq!(recorded.client, Some(client.to_canonical()));
            prop_assert_eq!(&*recorded.method, "GET");
            let (zone, logged) = recorded.keyed.unwrap();
            prop_assert_eq!((&*zone, &*logged), ("z", &*escape(&key)));
            if form == Form::Json {
                prop_assert_eq!(&*recorded.target, &target);
                prop_assert_eq!(&*recorded.user_agent, &said);
                prop_assert_eq!(read.time.as_nanos(), nanos / 1_000 * 1_000);
            } else {
                prop_assert_eq!(form, Form::Combined);
                prop_assert_eq!(&*recorded.target, &escape(target.as_bytes()));
                let logged = if said == "-" { String::new() } else { escape(said.as_bytes()) };
                prop_assert_eq!(&*recorded.user_agent, &logged);
                prop_assert_eq!(read.time.as_nanos(), nanos / 1_000_000_000 * 1_000_000_000);
            }
        }
    }
}
