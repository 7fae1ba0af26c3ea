//! Property tests of [`WindowedSocket`]: uploads through h2 from a client that checks its windows.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{Notify, Semaphore};
use tokio::task::{LocalSet, spawn_local};

use super::super::body::{Body, take_arrived_during};
use super::super::socket::WindowedSocket;
use super::super::{Timeouts, builder};
use super::*;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const DEFAULT_WINDOW: u32 = 65_535;

/// An upload of the client on one stream.
#[derive(Clone, Copy, Debug)]
struct Upload {
    /// Number of body bytes.
    length: usize,
    /// Number of body bytes per frame.
    piece: usize,
    /// Number of padding bytes per frame; `None`: the frames have no padding field.
    padding: Option<u8>,
}

/// One connection of the test.
#[derive(Clone, Debug)]
struct Case {
    /// Bodies that the client sends at the same time.
    uploads: Vec<Upload>,
    /// Number of bodies that the server reads at the same time.
    at_once: usize,
    /// Maximum number of bytes per read.
    most: usize,
    /// Buffer size of the connection, in bytes.
    room: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let piece = prop_oneof![20_usize..60, 1000_usize..16_000];
    let upload = (0_usize..600_000, piece, prop::option::of(any::<u8>()));
    let uploads = prop::collection::vec(upload, 1..6);
    let room = prop_oneof![5_usize..40, 100_usize..100_000];
    (uploads, 1_usize..4, 50_usize..40_000, room).prop_map(|(uploads, at_once, most, room)| {
        // Many small frames take long, and so does a small buffer. The length may still exceed the
        // initial window of a stream.
        let max_length = (room * 2000).max(DEFAULT_WINDOW as usize + 1000);
        let uploads = uploads.into_iter().map(|(length, piece, padding)| Upload {
            length: length.min(piece * 2000).min(max_length),
            piece,
            padding,
        });
        Case {
            uploads: uploads.collect(),
            at_once,
            most,
            room,
        }
    })
}

/// State of the client: what it may send, and what it has received.
struct Client {
    /// Window of the connection.
    connection: Cell<i64>,
    streams: RefCell<BTreeMap<u32, Stream>>,
    /// Number of `SETTINGS` frames to acknowledge.
    unacknowledged: Cell<usize>,
    changed: Notify,
}

struct Stream {
    upload: Upload,
    window: i64,
    /// Number of body bytes to send.
    left: usize,
    is_ended: bool,
    is_answered: bool,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

impl Client {
    fn new(uploads: &[Upload]) -> Self {
        let stream = |upload: &Upload| Stream {
            upload: *upload,
            window: DEFAULT_WINDOW.into(),
            left: upload.length,
            is_ended: false,
            is_answered: false,
        };
        // A client opens the streams 1, 3, 5 and so on.
        let streams = (1..).step_by(2).zip(uploads.iter().map(stream));
        Self {
            streams: RefCell::new(streams.collect()),
            connection: Cell::new(DEFAULT_WINDOW.into()),
            unacknowledged: Cell::default(),
            changed: Notify::new(),
        }
    }

    /// Reads frames. Panics unless each is one that h2 or [`Windows`] sends.
    async fn read(&self, mut from: ReadHalf<DuplexStream>, streams_read: &RefCell<BTreeSet<u32>>) {
        let mut head = [0; 9];
        while from.read_exact(&mut head).await.is_ok() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            from.read_exact(&mut payload).await.unwrap();
            let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
            let mut streams = self.streams.borrow_mut();
            match head[3] {
                SETTINGS if head[4] & ACK == 0 => {
                    let mut all = payload.chunks(6);
                    let window = all.find(|setting| setting[..2] == SETTINGS_INITIAL_WINDOW_SIZE);
                    assert_eq!(window.unwrap()[2..], WAITING_WINDOW.to_be_bytes());
                    self.unacknowledged.set(self.unacknowledged.get() + 1);
                }
                WINDOW_UPDATE => {
                    let more = u32::from_be_bytes(payload.try_into().unwrap());
                    if stream == 0 {
                        self.connection.set(self.connection.get() + i64::from(more));
                        assert!(self.connection.get() <= CONNECTION_WINDOW.into());
                    } else {
                        let state = streams.get_mut(&stream).unwrap();
                        state.window += i64::from(more);
                        assert!(state.window <= STREAM_WINDOW.into());
                        // h2 releases padding at once.
                        let is_padded = state.upload.padding.is_some();
                        let is_read = streams_read.borrow().contains(&stream);
                        assert!(is_read || is_padded, "nothing of it was read");
                    }
                }
                HEADERS => streams.get_mut(&stream).unwrap().is_answered = true,
                SETTINGS => {}
                other => panic!("a frame of type {other}: {payload:?}"),
            }
            self.changed.notify_one();
        }
    }

    /// Sends as much as the windows allow, until all requests are answered.
    async fn write(&self, mut to: WriteHalf<DuplexStream>) {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(SETTINGS, 0, 0, &[]));
        for id in self.streams.borrow().keys() {
            // POST http://a/
            let fields = [0x83, 0x86, 0x84, 0x41, 1, b'a'];
            bytes.extend(frame(HEADERS, END_HEADERS, *id, &fields));
        }
        loop {
            to.write_all(&bytes).await.unwrap();
            bytes.clear();
            for _ in 0..self.unacknowledged.take() {
                bytes.extend(frame(SETTINGS, ACK, 0, &[]));
            }
            let is_done = {
                let mut streams = self.streams.borrow_mut();
                for (id, stream) in &mut *streams {
                    bytes.extend(self.next_frame(*id, stream));
                }
                streams.values().all(|stream| stream.is_answered)
            };
            if is_done {
                return;
            }
            if bytes.is_empty() {
                self.changed.notified().await;
            }
        }
    }

    /// Returns the next frame of an upload, if the windows have room for it.
    fn next_frame(&self, id: u32, stream: &mut Stream) -> Vec<u8> {
        let Upload { piece, padding, .. } = stream.upload;
        // The padding, with its length in one byte.
        let overhead = padding.map_or(0, |padding| 1 + i64::from(padding));
        let room = stream.window.min(self.connection.get()) - overhead;
        // A frame must fit into the window, and the window is used to its last byte.
        let fitting = usize::try_from(room).unwrap_or(0);
        let count = piece.min(stream.left).min(fitting);
        if stream.is_ended || count == 0 && (stream.left > 0 || room < 0) {
            return Vec::new();
        }
        stream.left -= count;
        stream.is_ended = stream.left == 0;
        let flags = u8::from(stream.is_ended) * END_STREAM + u8::from(overhead > 0) * PADDED;
        let mut payload: Vec<u8> = padding.into_iter().collect();
        payload.resize(payload.len() + count, b'x');
        payload.resize(payload.len() + usize::from(padding.unwrap_or(0)), 0);
        let used = i64::try_from(payload.len()).unwrap();
        stream.window -= used;
        self.connection.set(self.connection.get() - used);
        frame(DATA, flags, id, &payload)
    }
}

/// Reads the bodies, `at_once` of them at the same time, and answers each.
async fn serve(socket: DuplexStream, case: Case, streams_read: Rc<RefCell<BTreeSet<u32>>>) {
    let windows = Rc::<Windows>::default();
    let socket = WindowedSocket::new(Vec::new(), socket, Rc::clone(&windows));
    let timeouts = Timeouts::of(&crate::test_settings::with("").server);
    let handshake = builder(&timeouts).handshake::<_, Bytes>(socket);
    let mut connection = handshake.await.unwrap();
    let running = Rc::new(Semaphore::new(case.at_once));
    while let Some(accepted) = poll_fn(|cx| {
        windows.register(cx);
        connection.poll_accept(cx)
    })
    .await
    {
        let (request, mut respond) = accepted.unwrap();
        let id = request.body().stream_id().as_u32();
        let body = RefCell::new(Body::new(request.into_body(), Rc::clone(&windows)));
        let (running, streams_read, most) =
            (Rc::clone(&running), Rc::clone(&streams_read), case.most);
        let sent = case.uploads[id as usize / 2].length;
        spawn_local(async move {
            let serving = pin!(async {
                let _running = running.acquire().await.unwrap();
                streams_read.borrow_mut().insert(id);
                let mut count = 0;
                loop {
                    let read = poll_fn(|cx| body.borrow_mut().poll_read(cx, most, |_| {}));
                    match read.await.unwrap() {
                        0 => break,
                        more => count += more,
                    }
                }
                assert_eq!(count, sent);
            });
            take_arrived_during(&body, serving).await;
            let answer = http::Response::new(());
            respond.send_response(answer, true).unwrap();
        });
    }
}

proptest! {
    #![proptest_config(testing::cases(2, 512))]

    #[test]
    fn every_upload_completes_however_few_are_read_at_once(case in cases()) {
        check(case);
    }
}

/// Padding that fills a window. Random cases rarely find this.
#[test]
fn uploads_with_much_padding_complete_one_after_the_other() {
    let upload = |length, piece, padding| Upload {
        length,
        piece,
        padding,
    };
    check(Case {
        uploads: vec![
            upload(102_000, 51, Some(152)),
            upload(409_089, 8001, Some(151)),
            upload(118_000, 59, None),
        ],
        at_once: 1,
        most: 25_874,
        room: 38_221,
    });
}

fn check(case: Case) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().start_paused(true).build().unwrap();
    let (near, server) = tokio::io::duplex(case.room);
    let (from, to) = tokio::io::split(near);
    let streams_read = Rc::<RefCell<BTreeSet<u32>>>::default();
    let client = Client::new(&case.uploads);
    LocalSet::new().block_on(&runtime, async move {
        let serving = spawn_local(serve(server, case, Rc::clone(&streams_read)));
        // The clock is virtual: it advances when no task can run.
        let done = tokio::time::timeout(Duration::from_secs(60), async {
            tokio::select! {
                () = client.read(from, &streams_read) => panic!("the connection ended"),
                () = client.write(to) => {}
            }
        });
        done.await.expect("all uploads complete");
        serving.abort();
    });
}
