//! Compares what the gateway has counted and logged with what the clients have seen.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;

use crate::load::soak::board::{Board, End, Fate};
use crate::load::soak::terms::{ROUTES, Reload};
use crate::load::soak::wait;
use crate::support::{Gateway, now, whole_lines};

/// How much later than it was closed the gateway may notice that a connection is.
const NOTICED: Duration = Duration::from_secs(1);

/// A request in the access log.
#[derive(Debug)]
struct Line {
    status: u16,
    /// How long it waited at the gate.
    waited: Option<Duration>,
    /// Why the gate rejected it.
    reason: Option<String>,
    /// Whether an origin answered.
    has_origin: bool,
}

/// How often each gate rejected requests, by reason.
type Rejections = BTreeMap<(&'static str, String), i64>;

/// What the gates did.
#[derive(Debug, Default)]
pub struct AtGates {
    /// Requests that waited and passed.
    waited: usize,
    rejections: Rejections,
}

impl AtGates {
    pub fn table(&self) -> String {
        let rejections = self.rejections.iter();
        let lines = rejections.map(|((origin, reason), count)| {
            let what = format!("rejected by {origin}: {reason}");
            format!("{what:<30}{count:>8}\n")
        });
        let lines: String = lines.collect();
        format!("{:<30}{:>8}\n{lines}", "waited at a gate", self.waited)
    }
}

/// Compares the counters.
///
/// Each response that a client got, complete or broken off, is counted once and with its code. A request whose client
/// left, or whose connection ended before it was read, is counted at most once, with any code. Nothing else is counted.
pub fn check(gateway: &Gateway, board: &Board) -> AtGates {
    let fates = board.fates();
    let mut answers = BTreeMap::<u16, i64>::new();
    let mut gone = 0;
    for (fate, count) in &fates {
        match fate.status() {
            Some(status) => *answers.entry(status).or_default() += count,
            None => gone += count,
        }
    }
    wait(board, "nobody waits, and nothing is in flight", || {
        let metrics = gateway.metrics();
        let all = [
            "drip_origin_in_flight",
            "drip_origin_queue_depth",
            "drip_zone_queue_depth",
        ];
        all.iter().all(|name| metrics.count(name, &[]) == 0)
    });
    if board.has_failed() {
        // Its requests are missing in the counts.
        return AtGates::default();
    }
    let metrics = gateway.metrics();
    let counted = |labels: &[(&str, &str)]| metrics.count("drip_requests_total", labels);
    for (status, count) in &answers {
        let code = counted(&[("code", &status.to_string())]);
        if !(*count..=count + gone).contains(&code) {
            board.fail(format!("{count} got {status}, and {code} are counted"));
        }
    }
    let (total, answered) = (counted(&[]), answers.values().sum::<i64>());
    if !(answered..=answered + gone).contains(&total) {
        board.fail(format!(
            "{answered} were answered, {gone} had gone, and {total} are counted"
        ));
    }
    let left = counted(&[("code", "499")]);
    if left > gone {
        board.fail(format!("{left} are counted as gone, of {gone} at the most"));
    }
    board.reloads(reloads(gateway));
    let at_gates = check_log(gateway, board, total);
    for reason in [
        "queue",
        "max_queue",
        "timeout",
        "max_wait",
        "stopping",
        "outage",
    ] {
        for route in &ROUTES {
            let key = (route.origin, reason.to_owned());
            let logged = at_gates.rejections.get(&key).copied().unwrap_or_default();
            let labels = [("origin", route.origin), ("reason", reason)];
            let name = "drip_origin_rejections_total";
            wait(
                board,
                &format!("{logged} rejections are {labels:?}"),
                || gateway.metrics().count(name, &labels) == logged,
            );
        }
    }
    at_gates
}

/// The files that the gateway has read, from its log, at the times that the log says: a busy machine may let this
/// program see a line after it has saved the next file.
fn reloads(gateway: &Gateway) -> Vec<Reload> {
    let (here, there) = (now(), Timestamp::now());
    let lines = gateway.log_lines().into_iter();
    let reloads = lines.filter_map(|(_, line)| {
        let is_good = line.contains("the changed file is in force");
        let is_read = is_good || line.contains("the file has errors");
        let told: Timestamp = line.split(' ').next()?.parse().ok()?;
        let ago = there.duration_since(told).unsigned_abs();
        is_read.then_some(Reload {
            at: here.checked_sub(ago)?,
            is_good,
        })
    });
    reloads.collect()
}

/// Compares the access log with the clients' requests: each has one line, with the status that its client got, and what
/// the gate did with it fits the terms of that time.
fn check_log(gateway: &Gateway, board: &Board, total: i64) -> AtGates {
    let file = gateway.site.folder().join("access.log");
    let text = || whole_lines(&file);
    wait(board, "each request has its line", || {
        i64::try_from(text().lines().count()) == Ok(total)
    });
    let mut lines: HashMap<String, Vec<Line>> = HashMap::new();
    for line in text().lines() {
        match parsed(line) {
            Some((id, parsed)) => lines.entry(id).or_default().push(parsed),
            None => board.fail(format!("an odd line of the access log: {line}")),
        }
    }
    let mut at_gates = AtGates::default();
    for end in board.ends() {
        let found = lines.remove(&end.id).unwrap_or_default();
        let status = end.fate.status();
        if status == Some(504) && !board.may_time_out(end.sent, end.at) {
            board.failed_with(
                &end.id,
                end.sent,
                format!("504, and nothing was wrong: {end:?}"),
            );
        }
        let is_right = match found.as_slice() {
            [] => status.is_none(),
            [line] => {
                if let Err(what) = fits(board, &end, line) {
                    board.failed_with(&end.id, end.sent, what);
                }
                at_gates.add(&end, line);
                status.is_none_or(|status| line.status == status)
            }
            _ => false,
        };
        if !is_right {
            board.failed_with(&end.id, end.sent, format!("{end:?} is logged as {found:?}"));
        }
    }
    for (id, lines) in lines {
        board.fail(format!("nobody sent {id}: {lines:?}"));
    }
    at_gates
}

impl AtGates {
    fn add(&mut self, end: &End, line: &Line) {
        if let Some(reason) = &line.reason {
            let key = (ROUTES[end.route].origin, reason.clone());
            *self.rejections.entry(key).or_default() += 1;
        } else if line.waited.is_some_and(|waited| !waited.is_zero()) {
            self.waited += 1;
        }
    }
}

/// Whether the terms in force at that time explain what became of the request at the gate.
fn fits(board: &Board, end: &End, line: &Line) -> Result<(), String> {
    // The gateway notices a little later that a client has left.
    let until = match end.fate {
        Fate::LeftWaiting | Fate::LeftMidAnswer => end.at + NOTICED,
        _ => end.at,
    };
    let gates = board.gates(end.route, end.sent, until);
    let waited = line.waited.unwrap_or_default();
    let Some(reason) = line.reason.as_deref() else {
        if line.status == 503 && !line.has_origin && !board.servers_out(end.sent, until) {
            return Err(format!(
                "not rejected by a gate, and no server was out: {line:?}"
            ));
        }
        if line.status == ROUTES[1].reject_status {
            return Err(format!(
                "there is no limit, and no gate rejected it: {line:?}"
            ));
        }
        if !gates.iter().any(|gate| gate.may_last(waited)) {
            return Err(format!("it waited too long: {line:?}; in force: {gates:?}"));
        }
        return Ok(());
    };
    let status = match reason {
        "queue" | "max_wait" => ROUTES[end.route].reject_status,
        _ => 503,
    };
    if line.status != status && line.status != 499 {
        return Err(format!("not the status of its reason: {line:?}"));
    }
    if !gates.iter().any(|gate| gate.may_reject(reason, waited)) {
        return Err(format!(
            "no gate could reject it so: {line:?}; in force: {gates:?}"
        ));
    }
    Ok(())
}

/// The id of the request, and what the line says of it.
fn parsed(line: &str) -> Option<(String, Line)> {
    let (asked, rest) = line.split_once(" HTTP/1.1\" ")?;
    let id = asked.split_once("&id=")?.1.split('&').next()?;
    let field = |name: &str| {
        let mut fields = rest.split(' ');
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    let waited = match field("origin_queue") {
        Some(seconds) => Some(Duration::from_secs_f64(seconds.parse().ok()?)),
        None => None,
    };
    let line = Line {
        status: rest.split(' ').next()?.parse().ok()?,
        waited,
        reason: field("origin_rejected").map(str::to_owned),
        has_origin: field("origin").is_some(),
    };
    Some((id.to_owned(), line))
}
