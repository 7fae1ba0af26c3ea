//! Tests of `drip top` that writes into a pipe.

use std::io::{Read, Write, pipe};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::top::fake::Fake;

fn top(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
    command.arg("top").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_pipe_gets_a_snapshot() {
    let fake = Fake::start();
    let output = top(&[&format!("http://{}", fake.address)]);
    let expected = format!(
        r"drip 0.1.0 at {}
gateway.toml: ok, loaded 2026-11-21 06:00:00 UTC
The store is out
no answer for 5 s
Start Redis
store OUT for 5.00s: connection refused, 12 skipped/s

zone        rate    out/s  depth  deepest  oldest    p95  rej/s  keys  override
per_client  10r/s      10     11        9   0.90s  0.80s      2    12  -
all         500r/s      0      0        0   0.00s      -      0     0  -

origin  server                 state   in flight  answered  failed  5xx    p99  reason
app     http://127.0.0.1:9000  in_use          1        80       0    4  0.25s  -
app     unix:app.sock          out             0         7       2    0      -  by failures since 2026-11-21 06:00:01 UTC; connection refused at 2026-11-21 06:00:01 UTC

gate  rate                     in flight  waiting    p99  rej/s  state
app   173.245128r/s of 200r/s     1 of 8       30  0.21s      3  backs off: trouble, 14 of 120 answers

waiting in   depth  oldest  plan  key
per_client       9   0.90s  -     192.0.2.1
per_client       2   1.50s  -     \u{{1b}}]0;owned\u{{7}}\u{{9b}}2J\u{{d}}\u{{a}}\x1B
gate of app     22       -  -     192.0.2.1
gate of app      8       -  -     \u{{1b}}[2J
",
        fake.address
    );
    assert_eq!(text(&output.stdout), expected);
    assert!(output.status.success() && output.stderr.is_empty());
    let once = top(&["--once", &fake.address.to_string()]);
    assert_eq!(text(&once.stdout), expected);
}

#[test]
fn where_nobody_listens_the_error_names_the_address_and_what_to_do() {
    let mut fake = Fake::start();
    fake.stop();
    let output = top(&[&fake.address.to_string()]);
    let expected = format!(
        "drip top: cannot read {}: connection refused; start the gateway, or give the address that its file \
         has as server.admin: drip top ADDRESS\n",
        fake.address
    );
    assert_eq!(text(&output.stderr), expected);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
}

#[test]
fn another_server_is_no_gateway() {
    let answers = [
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "it answers 404 Not Found to /api/now",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            "is not that of a drip gateway",
        ),
        ("SSH-2.0\r\n", "the connection ended"),
    ];
    for (answer, expected) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let output = top(&[&address]);
        assert_eq!(output.status.code(), Some(1));
        let received = text(&output.stderr);
        assert!(received.contains(expected), "{received}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let fake = Fake::start();
    // The reader closes after the first byte, or before it.
    for bytes in [1, 0] {
        let (mut reader, writer) = pipe().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
        command.args(["top", &fake.address.to_string()]);
        let process = command.stdout(writer).stderr(Stdio::piped()).spawn();
        drop(command);
        reader.read_exact(&mut [0; 1][..bytes]).unwrap();
        drop(reader);
        let output = process.unwrap().wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
    }
}
