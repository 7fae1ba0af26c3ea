//! Many connections in one thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{connect_from, now};

/// One of many connections that one thread handles.
#[derive(Debug)]
pub struct One {
    stream: TcpStream,
    /// Bytes received so far.
    pub got: Vec<u8>,
    /// Instant at which the end of the connection was seen.
    pub ended: Option<Instant>,
}

impl One {
    /// Connects from one of several local addresses, which together have enough ports.
    pub fn connect(to: SocketAddr, nth: usize) -> Self {
        let last = u8::try_from(2 + nth % 8).expect("few");
        let stream = connect_from([127, 0, 0, last].into(), to, None);
        let stream = stream.expect("the gateway takes a connection");
        stream.set_nonblocking(true).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream,
            got: Vec::new(),
            ended: None,
        }
    }

    /// Sends as much as the kernel takes at once. Returns the number of bytes.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The buffer is full, or the connection has ended. Reading shows which.
                Err(_) => break,
            }
        }
        sent
    }

    /// Reads what has arrived, up to about `most` bytes. Returns the number of bytes.
    pub fn take(&mut self, most: usize) -> usize {
        let mut piece = [0; 16 << 10];
        let mut taken = 0;
        while self.ended.is_none() && taken < most {
            match self.stream.read(&mut piece) {
                Ok(0) => self.ended = Some(now()),
                Ok(count) => {
                    self.got.extend_from_slice(&piece[..count]);
                    taken += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.ended = Some(now()),
            }
        }
        taken
    }

    /// Returns the status of the response, if one has arrived.
    pub fn status(&self) -> Option<u16> {
        let text = String::from_utf8_lossy(&self.got);
        text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
    }

    /// Resets the connection at once.
    pub fn reset(self) {
        set_socket_linger(&self.stream, Some(Duration::ZERO)).expect("a socket");
    }
}

/// Polls all connections until each has ended, or until `limit`. Returns how many have not.
pub fn watch(crowd: &mut [One], limit: Duration) -> usize {
    let deadline = now() + limit;
    loop {
        for one in crowd.iter_mut() {
            one.take(1 << 20);
        }
        let open = crowd.iter().filter(|one| one.ended.is_none()).count();
        if open == 0 || now() > deadline {
            return open;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Raises the limit of file descriptors of this process and its children to the maximum.
pub fn raise_descriptors() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("up to the hard limit");
    maximum.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    })
}
