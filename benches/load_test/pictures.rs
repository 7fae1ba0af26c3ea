//! Converts moments to points of a plot.

use crate::scene::{End, Told};
use crate::support::figures::float;

/// One step of a picture, in seconds.
const STEP: f64 = 0.1;

/// The number of moments in each tenth of a second, from 0 to `end`.
pub fn in_tenths(moments: &[f64], end: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    while float(points.len() as u64) * STEP <= end {
        points.push((float(points.len() as u64) * STEP, 0.0));
    }
    for moment in moments {
        let nth = points.partition_point(|(from, _)| from <= moment);
        if let Some((_, count)) = nth.checked_sub(1).and_then(|nth| points.get_mut(nth)) {
            *count += 1.0;
        }
    }
    points
}

/// The moments as a rate a second.
pub fn a_second(moments: &[f64], end: f64) -> Vec<(f64, f64)> {
    let tenths = in_tenths(moments, end).into_iter();
    tenths.map(|(at, count)| (at, count / STEP)).collect()
}

/// How many requests wait at the gateway: accepted, not yet at the backend, and not given up.
pub fn depth(all: &[Told]) -> Vec<(f64, f64)> {
    let accepted = all.iter().filter(|told| told.end != End::Refused);
    let mut changes: Vec<(f64, f64)> = accepted
        .flat_map(|told| [(told.sent, 1.0), (told.reached.unwrap_or(told.ended), -1.0)])
        .collect();
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut waiting = 0.0;
    let steps = changes.into_iter().map(|(at, change)| {
        waiting += change;
        (at, waiting)
    });
    [(0.0, 0.0)].into_iter().chain(steps).collect()
}

/// The most moments within any `span` seconds.
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
