//! Tests of HTTP/1 requests to an HTTP/2 origin: the corpus of `checklist::smuggling` again.

use crate::checklist::smuggling::corpus;
use crate::http2::recording::{RecordingOrigin, Seen};
use crate::support::{Gateway, Raw, one_h2c_origin};

fn start() -> (RecordingOrigin, Gateway) {
    let origin = RecordingOrigin::start();
    let gateway = Gateway::start(&one_h2c_origin(
        origin.address,
        "workers = 1\nheader_timeout = \"500ms\"\nbody_timeout = \"500ms\"",
        "",
    ));
    (origin, gateway)
}

fn has(seen: &Seen, name: &str) -> bool {
    seen.fields.contains_key(name)
}

#[test]
fn what_is_one_request_reaches_it_as_the_same_one() {
    let (origin, gateway) = start();
    for (name, _, bytes) in corpus().iter().filter(|(_, fine, _)| *fine) {
        let mut client = Raw::connect(gateway.address());
        client.send(bytes);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let line = text
            .trim_start()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let [method, target, _] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{name}: {line}")
        };
        let answer = client.answer_to(method);
        assert_eq!(answer.status(), 200, "{name}: {answer:?}");
        let [seen] = &origin.take()[..] else {
            panic!("{name}: not one request")
        };
        assert_eq!(seen.method, method, "{name}");
        let path = target.strip_prefix("http://test").unwrap_or(target);
        assert_eq!(seen.target, path, "{name}");
        assert_eq!(seen.authority.as_deref(), Some("test"), "{name}");
        let has_body = text.contains("hello") || name.contains("chunk");
        let body: &[u8] = if has_body { b"hello" } else { b"" };
        assert_eq!(seen.body, body, "{name}");
        let lengths = seen.fields.get_all("content-length");
        let lengths: Vec<_> = lengths.iter().collect();
        assert!(lengths.len() < 2, "{name}: {lengths:?}");
        let is_length = lengths.iter().all(|it| *it == &body.len().to_string());
        assert!(is_length, "{name}: {lengths:?}");
        for hop in [
            "host",
            "connection",
            "transfer-encoding",
            "upgrade",
            "keep-alive",
        ] {
            assert!(!has(seen, hop), "{name}: {hop}");
        }
        let trailers = seen.trailers.iter().flat_map(http::HeaderMap::keys);
        for trailer in trailers {
            let is_of_head = ["content-length", "host"].contains(&trailer.as_str());
            assert!(!is_of_head, "{name}: {trailer}");
        }
    }
}
