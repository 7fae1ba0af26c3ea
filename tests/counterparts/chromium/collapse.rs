//! Two Chromiums load a page of 141 images at once, and the origin sends each image once.

use std::io;
use std::thread;

use serde_json::{Value, json};

use crate::chromium::page::webdriver::Browser;
use crate::support::collapse::file_with;
use crate::support::secure;
use crate::support::{Exchange, Gateway, MS, Origin};

const IMAGES: usize = 141;

/// The width, the height and the colour of an image. No two have the same.
fn look(nth: usize) -> (usize, usize, [u8; 3]) {
    let byte = |of: usize| u8::try_from(of % 256).expect("a byte");
    let colour = [byte(nth), byte(7 * nth), byte(255 - nth)];
    (20 + nth, 10 + nth % 7, colour)
}

/// The image as a BMP of 24 bits.
fn image(nth: usize) -> Vec<u8> {
    let (width, height, [red, green, blue]) = look(nth);
    let line = (3 * width).next_multiple_of(4);
    let size = |of: usize| u32::try_from(of).expect("small").to_le_bytes();
    let mut bytes = b"BM".to_vec();
    for field in [54 + line * height, 0, 54, 40, width, height] {
        bytes.extend(size(field));
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    for _ in 0..height {
        let start = bytes.len();
        for _ in 0..width {
            bytes.extend([blue, green, red]);
        }
        bytes.resize(start + line, 0);
    }
    bytes
}

fn answer(exchange: &mut Exchange) -> io::Result<()> {
    let (kind, body) = if let Some(nth) = exchange.target().strip_prefix("/image/") {
        ("image/bmp", image(nth.parse().map_err(io::Error::other)?))
    } else {
        let images = (0..IMAGES).map(|nth| format!("<img src=/image/{nth}>"));
        let images: String = images.collect();
        let page = format!("<!doctype html><link rel=icon href=data:,><body>{images}");
        ("text/html", page.into_bytes())
    };
    // The others come meanwhile.
    thread::sleep(20 * MS);
    let length = body.len();
    let fields = format!("Content-Type: {kind}\r\nContent-Length: {length}");
    exchange.send(
        &[
            format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes(),
            &body,
        ]
        .concat(),
    )
}

/// What the page has of each image: width, height, and the colour of a pixel in the middle.
const SEEN: &str = "return Array.from(document.images, (it) => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [it.naturalWidth, it.naturalHeight];
    const context = canvas.getContext('2d');
    context.drawImage(it, 0, 0);
    const at = [it.naturalWidth >> 1, it.naturalHeight >> 1, 1, 1];
    return [it.naturalWidth, it.naturalHeight, ...context.getImageData(...at).data.slice(0, 3)];
})";

/// Lets two browsers open the page at once, and looks at all that they show and that the origin was asked.
fn both_see_all(origin: &Origin, url: &str, arguments: &[&str], protocol: &str) {
    let browsers: Vec<_> = (0..2).map(|_| Browser::start(arguments)).collect();
    let seen: Vec<Value> = thread::scope(|scope| {
        let opened = browsers.iter().map(|browser| {
            scope.spawn(move || {
                browser.go(url);
                let version =
                    "return performance.getEntriesByType('navigation')[0].nextHopProtocol";
                assert_eq!(browser.run(version), json!(protocol));
                browser.run(SEEN)
            })
        });
        let opened: Vec<_> = opened.collect();
        let seen = opened.into_iter().map(|it| it.join().expect("no panic"));
        seen.collect()
    });
    let wanted: Vec<_> = (0..IMAGES)
        .map(|nth| {
            let (width, height, [red, green, blue]) = look(nth);
            json!([width, height, red, green, blue])
        })
        .collect();
    for seen in seen {
        assert_eq!(seen, json!(wanted));
    }
    let mut asked: Vec<_> = origin.arrivals().into_iter().map(|it| it.target).collect();
    asked.sort();
    let mut once: Vec<_> = (0..IMAGES).map(|nth| format!("/image/{nth}")).collect();
    once.push("/".to_owned());
    once.sort();
    assert_eq!(asked, once, "the origin is asked once for each");
    for browser in &browsers {
        assert_eq!(browser.complaints(), Vec::<Value>::new());
    }
}

const KEEP: &str = "keep = \"1h\"";
/// Few at a time, so that many wait for images that are on their way.
const FEW: &str = "max_in_flight = 4\nqueue_timeout = \"60s\"";

#[test]
fn two_browsers_over_http_1_see_141_images_that_the_origin_sends_once() {
    let origin = Origin::answering(answer);
    let gateway = Gateway::start(&file_with(origin.address, FEW, "", KEEP));
    let url = format!("http://{}/", gateway.address());
    both_see_all(&origin, &url, &[], "http/1.1");
}

#[test]
fn two_browsers_over_http_2_see_141_images_that_the_origin_sends_once() {
    let origin = Origin::answering(answer);
    let gateway = secure::gateway("", &file_with(origin.address, FEW, "", KEEP));
    let url = format!("https://a.test:{}/", gateway.address().port());
    let arguments = [
        "--ignore-certificate-errors",
        "--host-resolver-rules=MAP a.test 127.0.0.1",
    ];
    both_see_all(&origin, &url, &arguments, "h2");
}
