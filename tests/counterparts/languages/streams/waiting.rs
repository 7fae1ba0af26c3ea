//! Tests of uploads that wait beside others of the same connection.

use std::process::Command;
use std::thread;

use crate::programs::python::python_with;
use crate::programs::running::source;
use crate::support::frames::{self, DATA, END_STREAM, Frames, Outcome, frame, get, head};
use crate::support::process::Process;
use crate::support::secure::gateway;
use crate::support::{Gateway, Origin, alone, eventually, one_origin};

/// Returns the head of an upload to a path.
fn upload(stream: u32, path: &str) -> Vec<u8> {
    let fields = frames::request("POST", path);
    head(stream, 0, &fields)
}

/// Sends a request, which is answered at once.
fn ask(client: &mut Frames, stream: u32, path: &str) {
    client.send(get(stream, path)).expect("sent");
    assert_eq!(client.outcome(stream), Outcome::Status(200));
}

/// Starts a gateway where the second request to `/slow` waits two seconds.
fn slow(origin: &Origin) -> Gateway {
    Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"all\"\nrate = \"30r/m\"\n\
         [[routes]]\npath = \"/slow\"\norigin = \"app\"\n\
         limits = [{{ zone = \"z\", burst = 9 }}]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.address
    ))
}

#[test]
fn small_frames_of_an_upload_that_waits_cost_no_other_stream_of_the_connection() {
    const FRAMES: usize = 3000;
    let origin = Origin::counting();
    let gateway = slow(&origin);
    let mut client = Frames::connect(gateway.address());
    ask(&mut client, 1, "/slow");
    client.send(upload(3, "/slow")).expect("sent");
    // All of it fits into the window of a body that waits.
    let piece = |flags| frame(DATA, flags, 3, [b'x'; 20]);
    client.send(piece(0).repeat(FRAMES)).expect("sent");
    ask(&mut client, 5, "/");
    assert_eq!(gateway.zone("drip_zone_queue_depth"), 1, "the upload waits");
    client.send(piece(END_STREAM)).expect("sent");
    assert_eq!(client.outcome(3), Outcome::Status(200));
    let length = (20 * (FRAMES + 1)).to_string();
    assert_eq!(client.body(3), Ok(length.into_bytes()));
}

#[test]
fn only_the_stream_that_exceeds_its_announced_length_ends() {
    const FLOW_CONTROL_ERROR: u32 = 3;
    let origin = Origin::counting();
    let gateway = slow(&origin);
    let mut client = Frames::connect(gateway.address());
    ask(&mut client, 1, "/slow");
    client.send(upload(3, "/slow")).expect("sent");
    client
        .send(frame(DATA, 0, 3, [b'x'; 10_000]).repeat(6))
        .expect("sent");
    ask(&mut client, 5, "/");
    client.send(frame(DATA, 0, 3, [b'x'; 5_536])).expect("sent");
    assert_eq!(client.outcome(3), Outcome::Reset(FLOW_CONTROL_ERROR));
    eventually("its position in the queue is free", || {
        gateway.zone("drip_zone_queue_depth") == 0
    });
    ask(&mut client, 7, "/");
}

#[test]
fn memory_of_waiting_uploads_is_freed_when_clients_disconnect() {
    const MB: u64 = 1 << 20;
    const CONNECTIONS: usize = 100;
    const STREAMS: u32 = 8;
    let _alone = alone();
    let origin = Origin::counting();
    let gateway = Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"all\"\nrate = \"1r/m\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\
         limits = [{{ zone = \"z\", burst = 10000 }}]\n",
        origin.address
    ));
    let process = Process::of(gateway.id());
    let before = process.memory();
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut client = Frames::connect(gateway.address());
            for stream in (0..STREAMS).map(|nth| 2 * nth + 1) {
                client.send(upload(stream, "/")).expect("sent");
                let piece = frame(DATA, 0, stream, [b'x'; 15_000]);
                client.send(piece.repeat(4)).expect("sent");
            }
            client
        })
        .collect();
    eventually("their bodies are here", || {
        process.memory() > before + 40 * MB
    });
    drop(clients);
    eventually("the memory is given back", || {
        process.memory() < before + 16 * MB
    });
}

#[test]
fn an_upload_in_twenty_thousand_pieces_waits_and_completes() {
    let origin = Origin::counting();
    let more = "max_in_flight = 1\nqueue_timeout = \"10m\"";
    let gateway = gateway("", &one_origin(origin.address, "", more));
    let python = python_with(&["httpx[http2]==0.28.1"]);
    let url = format!("https://{}/", gateway.address());
    // Two at once: one of them waits for the other.
    let program = || {
        let mut command = Command::new(&python);
        command
            .arg(source("streams/pieces.py"))
            .args([&url, "20000"]);
        let output = command.output().expect("python");
        String::from_utf8(output.stdout).expect("text")
    };
    thread::scope(|scope| {
        let both = [scope.spawn(program), scope.spawn(program)];
        for received in both {
            assert_eq!(received.join().expect("no panic"), "200 200 1000000\n");
        }
    });
}
