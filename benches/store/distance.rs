//! A relay that adds latency, so that a server seems far away.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gateway::time::clock;
use limit::Moment;

/// Returns the address of a relay to `server` that delays the server's responses by `latency`.
///
/// The relay runs as long as the program.
pub fn relay(server: SocketAddr, latency: Duration) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            // If nothing listens there, the connection ends.
            let _joined = TcpStream::connect(server).and_then(|far| join(&near, &far, latency));
        }
    });
    Ok(address)
}

/// Carries bytes between both connections until one ends.
fn join(near: &TcpStream, far: &TcpStream, latency: Duration) -> io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    carry(near.try_clone()?, far.try_clone()?, Duration::ZERO);
    carry(far.try_clone()?, near.try_clone()?, latency);
    Ok(())
}

/// Carries bytes in one direction, delayed by `latency`.
fn carry(mut from: TcpStream, mut to: TcpStream, latency: Duration) {
    let (sender, receiver) = mpsc::sync_channel::<(Moment, Vec<u8>)>(4096);
    thread::spawn(move || {
        for (due, bytes) in receiver {
            let left = due.since(clock::now());
            if !left.is_zero() {
                thread::sleep(left);
            }
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _closed = to.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if sender
                .send((clock::now() + latency, bytes[..read].to_vec()))
                .is_err()
            {
                break;
            }
        }
    });
}
