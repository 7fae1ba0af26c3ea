//! The pictures of the backend and the crowd.

use std::time::Duration;

use crate::pictures::{a_second, depth};
use crate::scene::{CallOutcome, End};
use crate::support::plot::{Chart, Panel};

/// The data that all pictures share. Times are in seconds from the scene's start.
pub struct Story<'a> {
    /// The machine and version that the scene was played on.
    pub about: &'a str,
    /// Time when the crowd arrives.
    pub crowd: f64,
    pub crowd_end: f64,
    pub end: f64,
    pub patience: Duration,
}

impl Story<'_> {
    pub fn alone(&self, all: &[CallOutcome]) -> Chart {
        let requests = self.panel("requests a second");
        let requests = self.rate(requests, "sent", &sent(all));
        let requests = self.rate(requests, "answered in time", &ended(all, End::Answered));
        let lost = self.panel("given up after 1 s, a second");
        self.chart("Without drip: three seconds of crowd, and then nobody is answered in time")
            .panel(requests)
            .panel(self.rate(lost, "given up", &ended(all, End::GivenUp)))
    }

    pub fn smooth(&self, all: &[CallOutcome]) -> Chart {
        let reached: Vec<f64> = all.iter().filter_map(|outcome| outcome.reached).collect();
        let panel = self
            .panel("requests a second")
            .height(300)
            .mark_y("150r/s", 150.0);
        let panel = self.rate(panel, "arriving at drip", &sent(all));
        self.chart("With drip: what comes in bursts leaves evenly")
            .panel(self.rate(panel, "departing to the backend", &reached))
    }

    pub fn queue(&self, all: &[CallOutcome]) -> Chart {
        let accepted = all.iter().filter(|outcome| outcome.reached.is_some());
        let accepted: Vec<f64> = accepted.map(|outcome| outcome.sent).collect();
        let waiting = self
            .panel("requests in drip's queue")
            .step("waiting", &depth(all))
            .mark_y("burst = 75", 75.0);
        let requests = self.rate(self.panel("requests a second"), "accepted", &accepted);
        self.chart("With drip: the queue fills, and what it cannot hold is refused at once")
            .panel(waiting)
            .panel(self.rate(requests, "rejected (429)", &ended(all, End::Refused)))
    }

    pub fn latency(&self, alone: &[CallOutcome], protected: &[CallOutcome]) -> Chart {
        let panel = self
            .panel("ms, by when the request reached the backend")
            .log_y()
            .height(260)
            .line("without drip", &latency(alone))
            .line("with drip", &latency(protected))
            .mark_y("clients give up", self.patience.as_secs_f64() * 1e3);
        self.chart("How long the backend takes for a request")
            .panel(panel)
    }

    fn chart(&self, title: &str) -> Chart {
        let chart = Chart::new(title).subtitle(self.about);
        chart.x_label("seconds").same_x()
    }

    fn panel(&self, label: &str) -> Panel {
        Panel::new(label)
            .mark_x("the crowd comes", self.crowd)
            .mark_x("it has gone", self.crowd_end)
            .x_to(self.end)
    }

    fn rate(&self, panel: Panel, name: &str, moments: &[f64]) -> Panel {
        panel.step(name, &a_second(moments, self.end))
    }
}

fn sent(all: &[CallOutcome]) -> Vec<f64> {
    all.iter().map(|outcome| outcome.sent).collect()
}

fn ended(all: &[CallOutcome], end: End) -> Vec<f64> {
    let calls = all.iter().filter(|outcome| outcome.end == end);
    calls.map(|outcome| outcome.ended).collect()
}

/// The time that the backend took for each request, in milliseconds, by time of arrival.
pub fn latency(all: &[CallOutcome]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = all
        .iter()
        .filter_map(|outcome| Some((outcome.reached?, outcome.backend? * 1e3)))
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}
