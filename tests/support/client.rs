//! A client over HTTP/1.1 without TLS.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::PATIENCE;
use super::wire::{Answer, Head};

/// A client's connection. Dropping it closes the connection.
///
/// The second field is the `Host` of its requests: the address, which the admin port accepts too.
#[derive(Debug)]
pub struct Client(BufReader<TcpStream>, String);

impl Client {
    pub fn connect(to: SocketAddr) -> Self {
        Self::try_connect(to).expect("the gateway takes a connection")
    }

    /// Connects to a gateway that may be away for a moment.
    pub fn try_connect(to: SocketAddr) -> io::Result<Self> {
        Ok(Self::over(TcpStream::connect(to)?))
    }

    /// Sends a GET to a gateway that may be away for a moment, and reads the response.
    pub fn try_fetch(to: SocketAddr, target: &str) -> io::Result<Answer> {
        let mut client = Self::try_connect(to)?;
        let request = client.request(target);
        client.0.get_mut().write_all(request.as_bytes())?;
        client.try_answer()
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        let host = stream.peer_addr().map(|peer| peer.to_string());
        Self(BufReader::new(stream), host.unwrap_or_default())
    }

    fn request(&self, target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.1)
    }

    /// Connects and sends a request, without reading the response.
    pub fn ask(to: SocketAddr, target: &str) -> Self {
        let mut client = Self::connect(to);
        client.get(target);
        client
    }

    pub fn get(&mut self, target: &str) {
        self.send(self.request(target).as_bytes());
    }

    /// Sends a GET and reads the response.
    pub fn fetch(&mut self, target: &str) -> Answer {
        self.get(target);
        self.answer()
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.0.get_mut().write_all(bytes.as_ref());
        sent.expect("the gateway reads");
    }

    /// Sends a GET and reads the response. Returns its status.
    pub fn try_get(&mut self, target: &str) -> io::Result<u16> {
        let request = self.request(target);
        self.0.get_mut().write_all(request.as_bytes())?;
        Ok(self.try_answer()?.status)
    }

    pub fn answer(&mut self) -> Answer {
        self.try_answer().expect("an answer")
    }

    /// Returns the final response, without interim responses before it.
    pub fn try_answer(&mut self) -> io::Result<Answer> {
        loop {
            let answer = Answer::read(&mut self.0)?;
            if !matches!(answer.status, 100 | 102..200) {
                return Ok(answer);
            }
        }
    }

    /// Reads only the head of a response; the body is not read yet.
    pub fn head(&mut self) -> Head {
        Head::read(&mut self.0).expect("a head").expect("an answer")
    }

    /// Reads the body that follows `head`, piece by piece.
    pub fn pass_body(&mut self, head: &Head, take: impl FnMut(&[u8])) -> io::Result<()> {
        head.pass_body(&mut self.0, take)
    }

    pub fn read_exact(&mut self, bytes: &mut [u8]) {
        self.0.read_exact(bytes).expect("that many bytes");
    }

    /// Reads all bytes until the connection ends, closed or reset.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset ends the connection too. The bytes before it have been read.
        let _how = self.0.read_to_end(&mut rest);
        rest
    }

    /// Shuts down the sending side.
    pub fn shut_sending(&self) {
        self.0
            .get_ref()
            .shutdown(Shutdown::Write)
            .expect("an open connection");
    }

    /// Returns the same connection, for another thread to send on.
    pub fn sender(&self) -> TcpStream {
        self.0.get_ref().try_clone().expect("a second handle")
    }
}

/// Sends a GET on a new connection and returns the response.
pub fn fetch(to: SocketAddr, target: &str) -> Answer {
    Client::ask(to, target).answer()
}

/// Sends a GET with these header fields, each with its line end, on a new connection.
pub fn fetch_with(to: SocketAddr, target: &str, fields: &str) -> Answer {
    exchange(
        to,
        format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"),
    )
}

/// Sends these bytes as a request on a new connection and returns the response.
pub fn exchange(to: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    let mut client = Client::connect(to);
    client.send(request);
    client.answer()
}

/// Returns the status of each client's next response.
pub fn statuses(clients: &mut [Client]) -> Vec<u16> {
    clients.iter_mut().map(|it| it.answer().status).collect()
}

/// Fails unless the next response to each client is 200.
pub fn all_pass<'a>(clients: impl IntoIterator<Item = &'a mut Client>) {
    let mut statuses = clients.into_iter().map(|it| it.answer().status);
    assert!(statuses.all(|status| status == 200));
}

/// Sends `request` over a socket file, and returns all bytes until the connection ends.
pub fn over_unix(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("a connection");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}
