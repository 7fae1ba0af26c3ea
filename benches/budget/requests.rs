//! Measures the instructions, allocations and clock reads of one request.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use crate::Bench;
use crate::gateway::{FULL_ROOM, GATE, Gateway, KEPT, PASS, PLAN, ROOM, SHUT, WAIT};
use crate::limits::{Figures, Group};
use crate::profile::{self, Profile};
use crate::support::answers::Outcome;
use crate::support::client::{Connection, Transport, connect_plain};
use crate::support::figures::float;
use crate::support::http2;

/// A client that sends one request at a time, so that no two events of a worker coincide.
#[derive(Clone, Copy, Debug)]
enum Client {
    Http1(Transport),
    /// Without TLS, by prior knowledge.
    Http2,
}

/// A kind of request.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    path: &'static str,
    client: Client,
    /// Number of requests of the shorter of two runs.
    requests: u64,
    /// Status of all responses except the first.
    status: u16,
    /// Visitors who enter a waiting room before, and what their next requests contain.
    visitors: Option<(usize, VisitorState)>,
}

/// State that visitors of a waiting room send back.
#[derive(Clone, Copy, Debug)]
enum VisitorState {
    Session,
    Ticket,
    /// As a browser does, which gets the page.
    TicketCookie,
}

/// Number of requests of the longer run, as a multiple of the shorter run's.
const LONGER: u64 = 5;
/// Key of all requests. It has a plan.
const KEY: u64 = 7;

const PLAIN: Client = Client::Http1(Transport::Plain);

const KINDS: [Kind; 11] = [
    kind("proxied", PASS, PLAIN),
    Kind {
        status: 429,
        ..kind("rejected", SHUT, PLAIN)
    },
    Kind {
        // Each takes 20 ms.
        requests: 60,
        ..kind("waits", WAIT, PLAIN)
    },
    kind("gate", GATE, PLAIN),
    kind("kept", KEPT, PLAIN),
    kind("http2", PASS, Client::Http2),
    kind("tls", PASS, Client::Http1(Transport::Tls)),
    kind("plan_cost_refund", PLAN, PLAIN),
    Kind {
        visitors: Some((1, VisitorState::Session)),
        ..kind("room_session", ROOM, PLAIN)
    },
    Kind {
        status: 429,
        visitors: Some((WAITING, VisitorState::Ticket)),
        ..kind("room_poll", FULL_ROOM, PLAIN)
    },
    Kind {
        status: 503,
        visitors: Some((WAITING, VisitorState::TicketCookie)),
        ..kind("room_page", FULL_ROOM, PLAIN)
    },
];

/// Number of visitors who wait. With this number none of them is asked to poll less often.
const WAITING: usize = 700;

const fn kind(name: &'static str, path: &'static str, client: Client) -> Kind {
    Kind {
        name,
        path,
        client,
        requests: 500,
        status: 200,
        visitors: None,
    }
}

/// Measures one request of each kind, and writes its functions into files.
pub fn measure(bench: &Bench, figures: &mut Figures) -> io::Result<()> {
    for kind in KINDS.iter().filter(|kind| bench.arguments.wants(kind.name)) {
        println!("  {}", kind.name);
        let few = run(bench, kind, kind.requests)?;
        let many = run(bench, kind, kind.requests * LONGER)?;
        let each = Each {
            few,
            many,
            requests: kind.requests * (LONGER - 1),
        };
        let counts = [
            (
                bench.arguments.instructions(),
                each.of(Profile::instructions),
            ),
            (
                Group::Allocations,
                each.of(|it| it.calls(profile::allocates)),
            ),
            (
                Group::ClockReads,
                each.of(|it| it.calls(profile::reads_clock)),
            ),
        ];
        for (group, count) in counts {
            figures.insert((group, kind.name.to_owned()), count);
        }
        bench.functions.write(kind.name, &each.functions())?;
    }
    Ok(())
}

/// Two runs that differ in the number of requests.
struct Each {
    few: Profile,
    many: Profile,
    /// Number of additional requests of the longer run.
    requests: u64,
}

impl Each {
    /// Returns the amount that one request adds to a count.
    fn of(&self, count: impl Fn(&Profile) -> u64) -> f64 {
        let added = float(count(&self.many)) - float(count(&self.few));
        added / float(self.requests)
    }

    /// Returns the instructions that one request adds to each function.
    fn functions(&self) -> Vec<(String, f64)> {
        let names = self.many.functions().keys();
        let added = names.map(|name| {
            let added = self.of(|profile| {
                let function = profile.functions().get(name);
                function.map_or(0, |function| function.instructions)
            });
            (name.clone(), added)
        });
        added.filter(|(_, added)| added.abs() >= 0.5).collect()
    }
}

/// Runs the gateway for a number of requests. Returns its profile.
fn run(bench: &Bench, kind: &Kind, requests: u64) -> io::Result<Profile> {
    let gateway = Gateway::start(Path::new(&bench.program), bench.origins, true)?;
    let to = match kind.client {
        Client::Http1(Transport::Tls) => gateway.tls,
        _ => gateway.plain,
    };
    bench.runtime.block_on(send(kind, to, requests))?;
    let mut profile = Profile::default();
    for thread in gateway.into_profiles()? {
        profile.add(&thread);
    }
    Ok(profile)
}

/// Sends requests of a kind, and checks the responses.
async fn send(kind: &Kind, to: SocketAddr, requests: u64) -> io::Result<()> {
    let unexpected = |status| {
        let Kind { name, .. } = kind;
        Err(io::Error::other(format!("{name}: answered with {status}")))
    };
    match kind.client {
        Client::Http1(transport) => {
            let path = kind.path;
            let plain = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nX-Key: {KEY}\r\n\r\n");
            let mut connection = Connection::with_transport(transport, to);
            let mut each = vec![plain];
            if let Some((count, state)) = kind.visitors {
                each = enter(&mut connection, &each[0], count, state).await?;
            }
            for (nth, request) in (0..requests).zip(each.iter().cycle()) {
                let status = connection.exchange(request.as_bytes()).await?;
                if status != kind.status && nth > 0 {
                    return unexpected(status);
                }
            }
        }
        Client::Http2 => {
            let socket = connect_plain(to).await?;
            let mut connection = http2::Connection::with_socket(socket, kind.path);
            for _ in 0..requests {
                connection.open_stream(KEY);
                let outcome = loop {
                    if let Some(outcome) = connection.outcomes().await?.pop() {
                        break outcome;
                    }
                };
                match outcome {
                    Outcome::Answered(status) if status == kind.status => {}
                    Outcome::Answered(status) => return unexpected(status),
                    Outcome::Failed | Outcome::GivenUp => return unexpected(0),
                }
            }
        }
    }
    Ok(())
}

/// Sends `request` for each visitor of a waiting room. Returns the next request of each.
async fn enter(
    connection: &mut Connection,
    request: &str,
    count: usize,
    state: VisitorState,
) -> io::Result<Vec<String>> {
    let (name, field) = match state {
        VisitorState::Session => ("Drip-Session", "Drip-Session: "),
        VisitorState::Ticket => ("Drip-Ticket", "Drip-Ticket: "),
        VisitorState::TicketCookie => (
            "Drip-Ticket",
            "Accept: text/html\r\nCookie: drip_ticket_full=",
        ),
    };
    if !matches!(state, VisitorState::Session) {
        // Occupies the only session.
        connection.exchange(request.as_bytes()).await?;
    }
    let mut next = Vec::with_capacity(count);
    for _ in 0..count {
        connection.exchange(request.as_bytes()).await?;
        let kept = connection.field(name);
        let kept = kept.ok_or_else(|| io::Error::other(format!("no {name} came")))?;
        let fields = request.trim_end_matches("\r\n");
        next.push(format!("{fields}\r\n{field}{kept}\r\n\r\n"));
    }
    Ok(next)
}
