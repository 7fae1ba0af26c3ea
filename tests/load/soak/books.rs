//! Compares the gateway's counters and access log with the clients' records.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::load::soak::board::{Board, End, RequestOutcome};
use crate::load::soak::file::{LONGEST_QUEUE, ROUTES};
use crate::load::soak::wait;
use crate::support::{Gateway, whole_lines};

/// Delay after which the gateway may notice a closed connection.
const NOTICED: Duration = Duration::from_secs(1);
/// Delay of the end of a wait on a busy machine.
const LATE: Duration = Duration::from_secs(1);

/// A request in the access log.
#[derive(Debug)]
struct Line {
    status: u16,
    /// Its wait at the gate.
    waited: Duration,
    /// Reason for which the gate rejected it.
    reason: Option<String>,
    /// Whether an origin answered.
    has_origin: bool,
}

/// Number of rejections of each gate, by origin and reason.
pub type Rejections = BTreeMap<(&'static str, String), i64>;

/// Compares the counters.
///
/// Each response that a client received, complete or broken off, is counted once and with its code.
/// A request whose client disconnected, or whose connection ended before it was read, is counted at
/// most once, with any code. Nothing else is counted.
pub fn check(gateway: &Gateway, board: &Board) -> Rejections {
    let fates = board.fates();
    let mut answers = BTreeMap::<u16, i64>::new();
    let mut disconnected = 0;
    for (fate, count) in &fates {
        match fate.status() {
            Some(status) => *answers.entry(status).or_default() += count,
            None => disconnected += count,
        }
    }
    wait(board, "nobody waits, and nothing is in flight", || {
        let metrics = gateway.metrics();
        let names = ["origin_in_flight", "origin_queue_depth", "zone_queue_depth"];
        let is_zero = |name: &&str| metrics.count(&format!("drip_{name}"), &[]) == 0;
        names.iter().all(is_zero)
    });
    if board.has_failed() {
        // Its requests are missing in the counts.
        return Rejections::default();
    }
    let metrics = gateway.metrics();
    let counted = |labels: &[(&str, &str)]| metrics.count("drip_requests_total", labels);
    for (status, count) in &answers {
        let code = counted(&[("code", &status.to_string())]);
        if !(*count..=count + disconnected).contains(&code) {
            board.fail(format!("{count} got {status}, and {code} are counted"));
        }
    }
    let (total, answered) = (counted(&[]), answers.values().sum::<i64>());
    if !(answered..=answered + disconnected).contains(&total) {
        board.fail(format!(
            "{answered} were answered, {disconnected} had gone, and {total} are counted"
        ));
    }
    let left = counted(&[("code", "499")]);
    if left > disconnected {
        board.fail(format!(
            "{left} are counted as gone, of {disconnected} at the most"
        ));
    }
    let rejections = check_log(gateway, board, total);
    let counted = |labels: &[(&str, &str)]| {
        let name = "drip_origin_rejections_total";
        gateway.count(name, labels)
    };
    wait(board, "rejections are counted as they are logged", || {
        let is_right = |((origin, reason), logged): (&(&str, String), &i64)| {
            counted(&[("origin", origin), ("reason", reason)]) == *logged
        };
        rejections.iter().all(is_right) && counted(&[]) == rejections.values().sum::<i64>()
    });
    rejections
}

/// Compares the access log with the clients' requests: each has one line with its status.
fn check_log(gateway: &Gateway, board: &Board, total: i64) -> Rejections {
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
    let mut rejections = Rejections::default();
    for end in board.ends() {
        let found = lines.remove(&end.id).unwrap_or_default();
        let status = end.fate.status();
        if status == Some(504) && !board.may_time_out(end.sent, end.at) {
            board.failed_since(end.sent, format!("504, and nothing was wrong: {end:?}"));
        }
        let is_right = match found.as_slice() {
            [] => status.is_none(),
            [line] => {
                if let Some(reason) = &line.reason {
                    let key = (ROUTES[end.route].origin, reason.clone());
                    *rejections.entry(key).or_default() += 1;
                }
                fits(board, &end, line) && status.is_none_or(|status| line.status == status)
            }
            _ => false,
        };
        if !is_right {
            board.failed_since(end.sent, format!("{end:?} is logged as {found:?}"));
        }
    }
    for (id, lines) in lines {
        board.fail(format!("nobody sent {id}: {lines:?}"));
    }
    rejections
}

/// Returns whether the status and the wait fit the gate's action and the faults at that time.
fn fits(board: &Board, end: &End, line: &Line) -> bool {
    // The gateway notices a disconnect a little later.
    let until = match end.fate {
        RequestOutcome::LeftWaiting | RequestOutcome::LeftMidAnswer => end.at + NOTICED,
        _ => end.at,
    };
    let in_time = line.waited <= LONGEST_QUEUE + LATE;
    let Some(reason) = line.reason.as_deref() else {
        let no_server = line.status == 503 && !line.has_origin;
        let is_explained = !no_server || board.servers_out(end.sent, until);
        return in_time && is_explained && line.status != ROUTES[1].reject_status;
    };
    let status = match reason {
        "queue" | "max_wait" => ROUTES[end.route].reject_status,
        _ => 503,
    };
    // For any other reason a request is rejected when it arrives.
    let at_once = line.waited.is_zero() || reason == "timeout";
    in_time && at_once && (line.status == status || line.status == 499)
}

/// Returns the id of the request, and the content of the line.
fn parsed(line: &str) -> Option<(String, Line)> {
    let (asked, rest) = line.split_once(" HTTP/1.1\" ")?;
    let id = asked.split_once("&id=")?.1.split('&').next()?;
    let field = |name: &str| {
        let mut fields = rest.split(' ');
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    let waited = field("origin_queue").map_or(Ok(0.0), str::parse::<f64>);
    let line = Line {
        status: rest.split(' ').next()?.parse().ok()?,
        waited: Duration::from_secs_f64(waited.ok()?),
        reason: field("origin_rejected").map(str::to_owned),
        has_origin: field("origin").is_some(),
    };
    Some((id.to_owned(), line))
}
