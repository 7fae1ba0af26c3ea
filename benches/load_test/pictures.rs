//! Converts moments to points of a plot.

use crate::scene::{CallOutcome, End};
use crate::support::figures::float;

/// One step of a picture, in seconds.
const STEP: f64 = 0.1;

/// The number of moments in each tenth of a second, from 0 to `end`.
pub fn in_tenths(moments: &[f64], end: f64) -> Vec<(f64, f64)> {
    in_steps(moments, STEP, end)
}

/// The moments as a rate a second.
pub fn a_second(moments: &[f64], end: f64) -> Vec<(f64, f64)> {
    per_step(moments, STEP, end)
}

/// The moments as a rate a second, counted in each `step` seconds.
pub fn per_step(moments: &[f64], step: f64, end: f64) -> Vec<(f64, f64)> {
    let counts = in_steps(moments, step, end).into_iter();
    counts.map(|(at, count)| (at, count / step)).collect()
}

fn in_steps(moments: &[f64], step: f64, end: f64) -> Vec<(f64, f64)> {
    let mut points = steps(step, end);
    for moment in moments {
        if let Some((_, count)) = step_of(&mut points, *moment) {
            *count += 1.0;
        }
    }
    points
}

fn steps(step: f64, end: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    while float(points.len() as u64) * step <= end {
        points.push((float(points.len() as u64) * step, 0.0));
    }
    points
}

fn step_of(points: &mut [(f64, f64)], moment: f64) -> Option<&mut (f64, f64)> {
    let nth = points.partition_point(|(from, _)| *from <= moment);
    points.get_mut(nth.checked_sub(1)?)
}

/// Returns the number of spans that have begun and not ended, at each change.
///
/// A span is given by its begin and its end.
pub fn changes(spans: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> = spans
        .flat_map(|(from, to)| [(from, 1.0), (to, -1.0)])
        .collect();
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut count = 0.0;
    let steps = changes.into_iter().map(|(at, change)| {
        count += change;
        (at, count)
    });
    [(0.0, 0.0)].into_iter().chain(steps).collect()
}

/// Returns the maximum of a changing number in each `step` seconds.
pub fn most_at_once(changes: &[(f64, f64)], step: f64, end: f64) -> Vec<(f64, f64)> {
    let mut points = steps(step, end);
    for two in changes.windows(2) {
        let ((from, count), (to, _)) = (two[0], two[1]);
        let first = points.partition_point(|(at, _)| at + step <= from);
        for (at, most) in points.iter_mut().skip(first) {
            if *at >= to {
                break;
            }
            *most = most.max(count);
        }
    }
    points
}

/// Returns the number of requests that wait at the gateway.
///
/// Such requests are accepted, not yet at the backend, and not given up.
pub fn depth(all: &[CallOutcome]) -> Vec<(f64, f64)> {
    let accepted = all.iter().filter(|outcome| outcome.end != End::Refused);
    changes(accepted.map(|outcome| (outcome.sent, outcome.reached.unwrap_or(outcome.ended))))
}

/// Returns the highest number of moments within any `span` seconds.
pub fn most_within(moments: &[f64], span: f64) -> usize {
    let mut sorted = moments.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (mut first, mut most) = (0, 0);
    for (last, at) in sorted.iter().enumerate() {
        while at - sorted[first] >= span {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}
