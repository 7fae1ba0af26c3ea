//! What `[routes.collapse]` would save of the requests of a log, for `simulate`.
//!
//! A log shows what was requested, when, and often for how long and with which status. It does not
//! show which answers are private, nor which requests have cookies. So what is found is an upper
//! bound.

mod paths;
mod request;
mod table;

use std::time::Duration;

use gateway::replay::{Collapse, Line};
use limit::Moment;

pub(crate) use self::paths::{PathTally, Tally};
pub(crate) use self::request::Request;
pub(crate) use self::table::{notes, table};

use self::paths::Paths;
use super::order::Order;

/// How long answers serve newcomers once they are complete, and how the file writes it.
pub(crate) const KEEPS: [(Duration, &str); 3] = [
    (Duration::ZERO, "0"),
    (Duration::from_secs(1), "1s"),
    (Duration::from_secs(10), "10s"),
];

const SECOND: u64 = 1_000_000_000;

/// Reads requests and counts those that would go to the origin.
pub(crate) struct CollapseSurvey {
    order: Order<Request>,
    counted: Counted,
}

/// What is counted of requests in order of their times.
struct Counted {
    collapse: Collapse<3>,
    paths: Paths,
    /// Requests that may lead and have no time at the origin in the log.
    untimed: u64,
    /// Whether a time is finer than a second.
    is_fine: bool,
    has_paths: bool,
}

/// What collapsing would save.
pub(crate) struct Collapsed {
    pub(crate) all: Tally,
    /// The paths, those with the largest saving first.
    pub(crate) paths: Vec<PathTally>,
    /// The requests of paths beyond those that are counted one by one.
    pub(crate) beyond: Tally,
    untimed: u64,
    is_fine: bool,
    has_paths: bool,
    forgotten: u64,
    /// Requests that would have waited for the answer of another one for too long.
    gave_up: u64,
}

impl CollapseSurvey {
    pub(crate) fn new() -> Self {
        let counted = Counted {
            collapse: Collapse::new(KEEPS.map(|(keep, _)| keep)),
            paths: Paths::default(),
            untimed: 0,
            is_fine: false,
            has_paths: false,
        };
        Self {
            order: Order::new(),
            counted,
        }
    }

    /// What to count of a line; `None` if the log does not say what was requested.
    ///
    /// `follow_limit`: how long the request waits for the answer of another one.
    pub(crate) fn read(&mut self, line: &Line, follow_limit: Duration) -> Option<Request> {
        let (name, is_known) = request::name(line)?;
        let counted = &mut self.counted;
        counted.has_paths |= is_known;
        let path = counted.paths.number(&name);
        let request = Request::of(line, path, follow_limit);
        counted.untimed += u64::from(request.leads() && request.took().is_none());
        Some(request)
    }

    /// Counts a request that comes at this time.
    pub(crate) fn count(&mut self, time: Moment, request: Request) {
        let counted = &mut self.counted;
        self.order.put(time.as_nanos(), request, |time, request| {
            counted.count(time, &request);
        });
    }

    pub(crate) fn end(mut self) -> Collapsed {
        let mut counted = self.counted;
        self.order
            .end(|time, request| counted.count(time, &request));
        let (all, paths, beyond) = counted.paths.end();
        Collapsed {
            all,
            paths,
            beyond,
            untimed: counted.untimed,
            is_fine: counted.is_fine,
            has_paths: counted.has_paths,
            forgotten: counted.collapse.forgotten(),
            gave_up: counted.collapse.gave_up(),
        }
    }
}

impl Counted {
    fn count(&mut self, time: u64, request: &Request) {
        self.is_fine |= !time.is_multiple_of(SECOND);
        let now = Moment::from_nanos(time);
        let departs = request.departs(&mut self.collapse, now);
        self.paths.count(request.path(), departs);
    }
}

impl Collapsed {
    /// Whether the log tells what was requested.
    pub(crate) fn has_paths(&self) -> bool {
        self.has_paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway::replay::Form;

    fn collapsed(form: Form, lines: &[&str]) -> Collapsed {
        let mut survey = CollapseSurvey::new();
        for line in lines {
            let line = form.read(line).unwrap();
            if let Some(request) = survey.read(&line, Duration::from_secs(5)) {
                survey.count(line.time, request);
            }
        }
        survey.end()
    }

    fn names(collapsed: &Collapsed) -> Vec<(&str, u64, [u64; 3])> {
        let paths = collapsed.paths.iter();
        let named = paths.map(|it| {
            let name = str::from_utf8(&it.path).unwrap();
            (name, it.tally.requests, it.tally.sent)
        });
        named.collect()
    }

    #[test]
    fn the_same_is_one_host_and_one_path_with_its_query() {
        let line = |end: &str, host: &str, uri: &str, rest: &str| {
            format!(
                "{{\"msec\":{end},\"host\":\"{host}\",\"uri\":\"{uri}\",\"request_time\":1{rest}}}"
            )
        };
        let lines = [
            line("11.0", "a", "/x?1", ""),
            line("11.1", "A", "/x?1", ",\"request_method\":\"HEAD\""),
            line("11.2", "a", "/x?2", ""),
            line("11.3", "b", "/x?1", ""),
            line("11.4", "a", "/x?1", ",\"request_method\":\"POST\""),
            line("11.5", "a", "/x?1", ",\"status\":500"),
            // The first answer is complete at 11.
            line("12.0", "a", "/x?1", ",\"status\":200"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let collapsed = collapsed(Form::Json, &lines);
        let expected = [("a/x", 6, [5, 4, 4]), ("b/x", 1, [1, 1, 1])];
        assert_eq!(names(&collapsed), expected);
        assert_eq!(collapsed.all.sent, [6, 5, 5]);
    }

    #[test]
    fn lines_in_order_of_their_ends_are_put_into_order_and_one_host_is_not_named() {
        // Three at once, of which the slowest came first.
        let line = |end: &str, took: &str| {
            format!("{{\"msec\":{end},\"host\":\"a\",\"uri\":\"/\",\"request_time\":{took}}}")
        };
        let lines = [line("10.3", "0.2"), line("10.4", "0.2"), line("12", "2")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let collapsed = collapsed(Form::Json, &lines);
        assert_eq!(names(&collapsed), [("/", 3, [1, 1, 1])]);
        assert!(collapsed.is_fine && collapsed.untimed == 0);
    }

    #[test]
    fn a_trace_whose_paths_are_all_the_root_has_none() {
        let pathless = collapsed(Form::Csv, &["1,a", "2,b"]);
        assert!(!pathless.has_paths());
        let with = collapsed(Form::Csv, &["1.01,a,/x", "1.1,b,/x", "1.12,a", "1.2,b"]);
        assert!(with.has_paths());
        assert_eq!(names(&with), [("/", 2, [1, 1, 1]), ("/x", 2, [1, 1, 1])]);
        assert_eq!(with.untimed, 4);
        let unsaid = collapsed(Form::Json, &["{\"msec\":1}"]);
        assert_eq!((unsaid.has_paths(), unsaid.all.requests), (false, 0));
    }

    #[test]
    fn ranges_and_conditional_requests_follow_and_never_lead() {
        let line = |second: &str, status: u16| {
            format!(
                "192.0.2.1 - - [21/Nov/2026:03:33:{second} +0000] \"GET /a HTTP/1.1\" {status} 1"
            )
        };
        let statuses = |statuses: &[u16]| {
            let lines: Vec<String> = statuses.iter().map(|status| line("47", *status)).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let collapsed = collapsed(Form::Combined, &lines);
            assert!(!collapsed.is_fine);
            collapsed.all.sent[0]
        };
        assert_eq!(statuses(&[304, 304, 206]), 3);
        assert_eq!(statuses(&[200, 304, 206, 404]), 1);
        assert_eq!(statuses(&[200, 302, 429, 499]), 4);
    }
}
