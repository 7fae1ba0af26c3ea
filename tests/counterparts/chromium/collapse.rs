//! A test of two Chromiums that load 141 images at once: the origin sends each image once.

use std::io;
use std::thread;

use serde_json::{Value, json};

use crate::chromium::page::webdriver::Browser;
use crate::support::collapse::file_with;
use crate::support::secure;
use crate::support::{Exchange, MS, Origin, side_by_side};

const IMAGES: usize = 141;

/// Returns the width, the height and the colour of an image. No two images are the same.
fn look(nth: usize) -> (usize, usize, [u8; 3]) {
    let byte = |of: usize| u8::try_from(of % 256).expect("a byte");
    let colour = [byte(nth), byte(7 * nth), byte(255 - nth)];
    (20 + nth, 10 + nth % 7, colour)
}

fn image(nth: usize) -> String {
    let (width, height, [red, green, blue]) = look(nth);
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'>\
         <rect width='{width}' height='{height}' fill='rgb({red},{green},{blue})'/></svg>"
    )
}

fn answer(exchange: &mut Exchange) -> io::Result<()> {
    let (kind, body) = if let Some(nth) = exchange.target().strip_prefix("/image/") {
        (
            "image/svg+xml",
            image(nth.parse().map_err(io::Error::other)?),
        )
    } else {
        let images = (0..IMAGES).map(|nth| format!("<img src=/image/{nth}>"));
        let images: String = images.collect();
        let page = format!("<!doctype html><link rel=icon href=data:,><body>{images}");
        ("text/html", page)
    };
    // The other requests arrive meanwhile.
    thread::sleep(20 * MS);
    let length = body.len();
    let fields = format!("Content-Type: {kind}\r\nContent-Length: {length}");
    exchange.send(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}").as_bytes())
}

/// Script that returns each image's width, height, and colour of its middle pixel.
const SEEN: &str = "return Array.from(document.images, (it) => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [it.naturalWidth, it.naturalHeight];
    const context = canvas.getContext('2d');
    context.drawImage(it, 0, 0);
    const at = [it.naturalWidth >> 1, it.naturalHeight >> 1, 1, 1];
    return [it.naturalWidth, it.naturalHeight, ...context.getImageData(...at).data.slice(0, 3)];
})";

#[test]
fn two_browsers_over_http_2_see_141_images_that_the_origin_sends_once() {
    // A low maximum, so that many requests wait for images in flight.
    const FEW: &str = "max_in_flight = 4\nqueue_timeout = \"60s\"";
    const ARGUMENTS: [&str; 2] = [
        "--ignore-certificate-errors",
        "--host-resolver-rules=MAP a.test 127.0.0.1",
    ];
    let origin = Origin::answering(answer);
    let gateway = secure::gateway("", &file_with(origin.address, FEW, "", "keep = \"1h\""));
    let url = &format!("https://a.test:{}/", gateway.address().port());
    let browsers = [0; 2].map(|_| Browser::start(&ARGUMENTS));
    let seen = side_by_side(&browsers, |browser| {
        browser.go(url);
        let version = "return performance.getEntriesByType('navigation')[0].nextHopProtocol";
        assert_eq!(browser.run(version), json!("h2"));
        browser.run(SEEN)
    });
    let expected: Vec<_> = (0..IMAGES)
        .map(|nth| {
            let (width, height, [red, green, blue]) = look(nth);
            json!([width, height, red, green, blue])
        })
        .collect();
    for seen in seen {
        assert_eq!(seen, json!(expected));
    }
    let mut asked: Vec<_> = origin.arrivals().into_iter().map(|it| it.target).collect();
    asked.sort();
    let mut once: Vec<_> = (0..IMAGES).map(|nth| format!("/image/{nth}")).collect();
    once.push("/".to_owned());
    once.sort();
    assert_eq!(asked, once, "the origin gets one request for each");
    for browser in &browsers {
        assert_eq!(browser.complaints(), Vec::<Value>::new());
    }
}
