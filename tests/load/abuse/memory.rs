//! Memory that many requests took at once goes back to the system when they have gone.

use crate::load::abuse::{MB, long_until};
use crate::support::frames::{DATA, Frames, frame, head};
use crate::support::process::Process;
use crate::support::{Gateway, Origin, one_zone};

const CLIENTS: usize = 25;
const UPLOADS: u32 = 100;
/// What each upload sends ahead of its turn, in pieces of the largest size.
const PIECES: usize = 3;
const PIECE: usize = 16 << 10;
/// What the uploads of all clients hold at least, of 117 MB that they send.
const HELD: u64 = 100 * MB;
/// What may stay when all have gone.
const REST: u64 = 25 * MB;

/// Connects, and begins uploads that wait for their turn.
fn upload(gateway: &Gateway) -> Frames {
    let mut client = Frames::connect(gateway.address());
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "a.test"),
        (":path", "/upload?key=a"),
    ];
    for nth in 0..UPLOADS {
        let stream = 2 * nth + 1;
        client.send(head(stream, 0, &fields)).expect("sent");
        for _ in 0..PIECES {
            let piece = frame(DATA, 0, stream, [b'x'; PIECE]);
            client.send(piece).expect("sent");
        }
    }
    client
}

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn memory_of_many_uploads_that_waited_is_given_back_each_time() {
    let origin = Origin::answering(|exchange| exchange.reply(b"ok"));
    let zone = one_zone(&origin, "1r/h", "burst = 10000");
    let gateway = Gateway::start(&format!("workers = 2\n{zone}"));
    let process = Process::of(gateway.id());
    let before = process.memory();
    for _ in 0..3 {
        let clients: Vec<_> = (0..CLIENTS).map(|_| upload(&gateway)).collect();
        long_until("the uploads to be held", || {
            process.memory() > before + HELD
        });
        drop(clients);
        long_until("the memory to be given back", || {
            process.memory() < before + REST
        });
    }
}
