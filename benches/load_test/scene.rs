//! Plays calls, and reports the outcome of each.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use gateway::time::clock;
use limit::Moment;
use tokio::runtime;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep_until, timeout};

use crate::backend::Backend;
use crate::calls::Call;
use crate::support::client::Connection;

/// The outcome of a call. Times are in seconds from the scene's start.
#[derive(Clone, Copy, Debug)]
pub struct CallOutcome {
    pub path: &'static str,
    pub sent: f64,
    /// Arrival at the backend.
    pub reached: Option<f64>,
    /// Time from its arrival at the backend to the response.
    pub backend: Option<f64>,
    pub ended: f64,
    pub end: End,
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Answered,
    /// Answered with a status other than 2xx.
    Refused,
    /// The client's timeout expired.
    GivenUp,
    Failed,
}

/// The calls, their target, and the backend.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub calls: &'a [Call],
    pub to: SocketAddr,
    pub backend: &'a Backend,
    /// Time that a client waits for its answer.
    pub patience: Duration,
}

impl Scene<'_> {
    /// Plays the scene on this thread, until all calls have ended.
    pub fn play(&self) -> Vec<CallOutcome> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        // Requests of earlier scenes.
        let known = self.backend.visits().len();
        let began = clock::now();
        let ends = runtime.block_on(LocalSet::new().run_until(self.call()));
        let visits: HashMap<_, _> = self
            .backend
            .visits()
            .drain(known..)
            .map(|visit| (visit.call, visit))
            .collect();
        let since = |moment: Moment| moment.since(began).as_secs_f64();
        let outcome = ends.into_iter().enumerate().map(|(index, call)| {
            let visit = visits.get(&index);
            CallOutcome {
                path: self.calls[index].path,
                sent: since(call.sent),
                reached: visit.map(|visit| since(visit.arrived)),
                backend: visit
                    .and_then(|visit| Some(visit.done?.since(visit.arrived).as_secs_f64())),
                ended: since(call.at),
                end: call.end,
            }
        });
        outcome.collect()
    }

    /// Sends all calls. Returns their ends.
    async fn call(&self) -> Vec<Ended> {
        let began = Instant::now();
        let idle = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = self
            .calls
            .iter()
            .enumerate()
            .map(|(index, call)| {
                let client = Client {
                    index,
                    path: call.path,
                    at: began + call.at,
                    to: self.to,
                    patience: self.patience,
                };
                spawn_local(client.play(Rc::clone(&idle)))
            })
            .collect();
        let mut ends = Vec::with_capacity(tasks.len());
        for task in tasks {
            ends.push(task.await.expect("no panic"));
        }
        ends
    }
}

/// The end of a call, as its client sees it.
struct Ended {
    sent: Moment,
    at: Moment,
    end: End,
}

/// A client that sends one call.
struct Client {
    index: usize,
    path: &'static str,
    at: Instant,
    to: SocketAddr,
    patience: Duration,
}

impl Client {
    /// Sends the call when it is due, on an idle connection if there is one.
    async fn play(self, idle: Rc<RefCell<Vec<Connection>>>) -> Ended {
        sleep_until(self.at).await;
        let sent = clock::now();
        let kept = idle.borrow_mut().pop();
        let mut connection = kept.unwrap_or_else(|| Connection::new(self.to));
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: load-test\r\nX-Call: {}\r\n\r\n",
            self.path, self.index
        );
        let end = match timeout(self.patience, connection.exchange(request.as_bytes())).await {
            Ok(Ok(200..300)) => End::Answered,
            Ok(Ok(_)) => End::Refused,
            Ok(Err(_)) => End::Failed,
            Err(_) => End::GivenUp,
        };
        let at = clock::now();
        idle.borrow_mut().push(connection);
        Ended { sent, at, end }
    }
}
