//! Generates messages: valid ones, and invalid ones.

use crate::oracle::lists::{AWKWARD, METHODS, ODD_METHODS, OTHERS, STATUSES, TARGETS, VERSIONS};
use crate::support::rng::Rng;

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes());
}

fn end_of_line(rng: &mut Rng, out: &mut Vec<u8>) {
    let odd = rng.percent(1);
    put(
        out,
        if odd {
            rng.pick(&["\n", "\r", "\r\r\n", " \r\n", "\r\n "])
        } else {
            "\r\n"
        },
    );
}

fn field(rng: &mut Rng, out: &mut Vec<u8>, name: &str, value: &str) {
    put(out, name);
    let blanks = rng.pick(&[": ", ": ", ": ", ": ", ":", ":\t", ":  \t "]);
    put(out, if rng.percent(1) { " : " } else { blanks });
    put(out, value);
    if rng.percent(5) {
        put(out, rng.pick(&[" ", "\t", " \t "]));
    }
    end_of_line(rng, out);
}

/// Generates the size of a chunk in various notations.
fn size_line(rng: &mut Rng, size: usize) -> String {
    let size = match rng.within(0, 20) {
        0 => format!("{size:X}"),
        1 => format!("000{size:x}"),
        2 if rng.percent(20) => format!("{:x}", size + 1),
        3 if rng.percent(20) => rng
            .pick(&["", "g", "+1", "0x1", "-1", "ffffffffffffffff"])
            .into(),
        _ => format!("{size:x}"),
    };
    let behind = match rng.within(0, 20) {
        0 => rng.pick(&[
            " ", "\t", " \t ", " ;a", ";a=b", ";a=\"b\"", ";", ";;", "; a = b ",
        ]),
        1 if rng.percent(20) => {
            rng.pick(&[" x", " 5", ";\u{0}", ";\u{1}", ";a\rb", ";a\nb", ";\u{e9}"])
        }
        _ => "",
    };
    format!("{size}{behind}")
}

fn chunks(rng: &mut Rng, out: &mut Vec<u8>) {
    for _ in 0..rng.within(0, 4) {
        let data = data(rng);
        if data.is_empty() {
            continue;
        }
        let line = size_line(rng, data.len());
        put(out, &line);
        end_of_line(rng, out);
        out.extend(data);
        end_of_line(rng, out);
    }
    let line = size_line(rng, 0);
    put(out, &line);
    end_of_line(rng, out);
    if rng.percent(25) {
        for _ in 0..rng.within(1, 4) {
            let name = rng.pick(&["X", "x", "Checksum", "ETag", "Host", "Te", "Cookie"]);
            let (other, value) = rng.pick(&OTHERS);
            let name = if rng.percent(30) { other } else { name };
            field(rng, out, name, value);
        }
    }
    end_of_line(rng, out);
}

fn data(rng: &mut Rng) -> Vec<u8> {
    let length = rng.pick(&[0, 1, 2, 5, 5, 16, 17, 100, 5000]);
    let which = rng.pick(&[0, 1, 2]);
    let byte = |at: u64| match which {
        0 => b"hello"[usize::try_from(at % 5).expect("few")],
        1 => b"\r\n0\r\n\r\n"[usize::try_from(at % 7).expect("few")],
        _ => u8::try_from(at * 7 % 256).expect("a byte"),
    };
    (0..length).map(byte).collect()
}

/// Generates a message: a first line, fields and a body that mostly matches them.
fn message(rng: &mut Rng, line: &str, out: &mut Vec<u8>) {
    put(out, line);
    end_of_line(rng, out);
    let mut fields = Vec::new();
    let mut body = Vec::new();
    if rng.percent(90) {
        fields.push(("Host", "a".to_owned()));
    }
    match rng.within(0, 100) {
        0..25 => {}
        25..50 => {
            body = data(rng);
            fields.push(("Content-Length", body.len().to_string()));
        }
        50..85 => {
            fields.push(("Transfer-Encoding", "chunked".to_owned()));
            chunks(rng, &mut body);
        }
        _ => {
            for _ in 0..rng.within(1, 3) {
                let (name, value) = rng.pick(&AWKWARD);
                fields.push((name, value.to_owned()));
            }
            body = data(rng);
            if rng.percent(50) {
                body.clear();
                chunks(rng, &mut body);
            }
        }
    }
    let others = if rng.percent(1) {
        rng.pick(&[90, 100, 128, 256, 257, 300])
    } else {
        rng.within(0, 4)
    };
    for _ in 0..others {
        // Most fields are valid. Otherwise nothing would be read.
        let most = if rng.percent(5) { OTHERS.len() } else { 24 };
        let (name, value) = rng.pick(&OTHERS[..most]);
        let at = usize::try_from(rng.within(0, fields.len() as u64 + 1)).expect("few");
        fields.insert(at, (name, value.to_owned()));
    }
    for (name, value) in fields {
        let name = match rng.within(0, 10) {
            0 => name.to_ascii_lowercase(),
            1 => name.to_ascii_uppercase(),
            _ => name.to_owned(),
        };
        field(rng, out, &name, &value);
    }
    end_of_line(rng, out);
    out.extend(body);
}

/// Generates a few requests, one after the other.
pub fn requests(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..rng.pick(&[1, 1, 2, 3]) {
        if rng.percent(5) {
            put(&mut out, rng.pick(&["\r\n", "\r\n\r\n", "\n", "\r"]));
        }
        // Here too, most are valid.
        let methods = if rng.percent(1) {
            &ODD_METHODS[..]
        } else {
            &METHODS[..]
        };
        let targets = if rng.percent(10) { TARGETS.len() } else { 13 };
        let versions = if rng.percent(5) { VERSIONS.len() } else { 11 };
        let (method, target) = (rng.pick(methods), rng.pick(&TARGETS[..targets]));
        let version = rng.pick(&VERSIONS[..versions]);
        let space = if rng.percent(1) { "  " } else { " " };
        message(rng, &format!("{method} {target}{space}{version}"), &mut out);
    }
    out
}

/// Generates a response, maybe after interim ones, and maybe followed by more bytes.
pub fn answers(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    while rng.percent(10) {
        let interim = rng.pick(&["100 Continue", "103 Early Hints", "102 Processing", "199 X"]);
        put(&mut out, &format!("HTTP/1.1 {interim}\r\n"));
        let (name, value) = rng.pick(&OTHERS[..24]);
        field(rng, &mut out, name, value);
        end_of_line(rng, &mut out);
    }
    let versions = if rng.percent(5) { VERSIONS.len() } else { 11 };
    let statuses = if rng.percent(20) { STATUSES.len() } else { 12 };
    let version = rng.pick(&VERSIONS[..versions]);
    let status = rng.pick(&STATUSES[..statuses]);
    message(rng, &format!("{version} {status}"), &mut out);
    if rng.percent(10) {
        put(
            &mut out,
            rng.pick(&["x", "\r\n", "HTTP/1.1 200 OK\r\n\r\n"]),
        );
    }
    out
}
