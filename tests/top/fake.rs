//! A fake admin port, controlled by a test.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Debug, Default)]
struct Said {
    /// Problem with the file.
    error: Option<Value>,
    over: bool,
}

pub struct Fake {
    pub address: SocketAddr,
    said: Arc<Mutex<Said>>,
    accepting: Option<JoinHandle<()>>,
}

impl Fake {
    pub fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    pub fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let said = Arc::<Mutex<Said>>::default();
        let shared = Arc::clone(&said);
        let accepting = thread::spawn(move || {
            while !shared.lock().unwrap().over {
                if let Ok((stream, _)) = listener.accept() {
                    let said = Arc::clone(&shared);
                    // The thread ends when the client disconnects.
                    thread::spawn(move || drop(serve(stream, &said)));
                } else {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        Self {
            address,
            said,
            accepting: Some(accepting),
        }
    }

    pub fn break_file(&self, message: &str) {
        let problems = [json!({"line": 3, "column": 8, "message": message})];
        let error = json!({"since": "2026-11-21T06:01:00.5Z", "problems": problems});
        self.said.lock().unwrap().error = Some(error);
    }

    /// Ends all connections, and accepts no more.
    pub fn stop(&mut self) {
        self.said.lock().unwrap().over = true;
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(mut stream: TcpStream, said: &Mutex<Said>) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut request = String::new();
    while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
        request += &line.to_ascii_lowercase();
        request.push('\n');
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match answer(path, &said.lock().unwrap()) {
        Some(body) => ("200 OK", body.to_string()),
        None => ("404 Not Found", "{}".to_owned()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Returns the response to this path: that of `gateway.json`, with the problem of the file.
fn answer(path: &str, said: &Said) -> Option<Value> {
    let all: Value = serde_json::from_str(include_str!("gateway.json")).unwrap();
    let mut answer = all.get(path)?.clone();
    if let (Some(error), Some(shown)) = (&said.error, answer.get_mut("error")) {
        *shown = match path {
            "/api/now" => json!({"line": 3, "message": "broken"}),
            _ => error.clone(),
        };
    }
    Some(answer)
}
