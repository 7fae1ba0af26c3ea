//! The selected zone: its settings, its limits, and the outcomes of its requests.

use std::fmt::Write as _;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::numbers::{share, wait};
use super::{Paint, View, overridden};
use crate::limit::show_duration;
use crate::status::views::{Limit, Zone, ZonePlan};
use crate::tools::top::page::Panel;

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let zones = view.shown().zones();
    let Some(zone) = zones.get(view.page.selected(zones)) else {
        return frame.render_widget(view.block("settings", Some(Panel::Settings)), area);
    };
    let block = view.block(zone.name.as_str(), Some(Panel::Settings));
    let faint = Paint::faint();
    let mut lines = vec![Line::raw(format!("{} {}", zone.rate, zone.algorithm))];
    if let Some(row) = view.shown().rows().get(view.page.selected(zones)) {
        let told = overridden::lines(&row.now).into_iter();
        lines.extend(told.map(|text| Line::styled(text, view.paint.mark())));
    }
    lines.push(Line::raw(format!("key {}", zone.key)));
    lines.extend(shared(zone).map(Line::raw));
    lines.extend(zone.limits.iter().map(|of| Line::raw(limit(of))));
    lines.extend(zone.plans.iter().map(|of| Line::raw(plan(of))));
    lines.push(Line::default());
    lines.extend(verdicts(zone).into_iter().map(Line::raw));
    lines.push(Line::default());
    lines.push(Line::styled(keys(zone), faint));
    let widget = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(widget.block(block), area);
}

/// How the zone is shared by gateways; `None` if it is not.
fn shared(zone: &Zone) -> Option<String> {
    if matches!(zone.store.as_str(), "" | "memory") {
        return None;
    }
    // In the form of the file: most leases are some milliseconds.
    let lease = Duration::try_from_secs_f64(zone.lease_seconds).ok();
    let lease = lease.filter(|lease| !lease.is_zero());
    let lease = lease.map_or_else(String::new, |it| format!(", lease {}", show_duration(it)));
    let (store, if_out) = (&zone.store, &zone.on_store_failure);
    Some(format!("in {store}{lease}, {if_out} if it is out"))
}

/// A limit of a route, as the file has it.
fn limit(limit: &Limit) -> String {
    let mut text = format!("{}: burst {}", limit.route, limit.burst);
    // Writing to a string does not fail.
    let _ = match limit.delay {
        _ if limit.nodelay => write!(text, ", nodelay"),
        Some(delay) if delay > 0 => write!(text, ", delay {delay}"),
        _ => Ok(()),
    };
    if let Some(most) = limit.in_flight {
        let _ = write!(text, ", in_flight {most}");
    }
    if let Some(most) = limit.max_wait_seconds {
        let _ = write!(text, ", max_wait {}", wait(most));
    }
    if limit.dry_run {
        text += ", dry_run";
    }
    text
}

/// A plan, with what it has other than the zone and its limits.
fn plan(plan: &ZonePlan) -> String {
    let ZonePlan { keys, weight, .. } = plan;
    let rate = plan.rate.as_ref().map(|rate| format!("rate {rate}"));
    let burst = plan.burst.map(|burst| format!("burst {burst}"));
    let weight = (*weight != 1).then(|| format!("weight {weight}"));
    let class = plan.class.as_ref().map(|class| format!("class {class}"));
    let keys = format!("{keys} {}", if *keys == 1 { "key" } else { "keys" });
    let parts = [rate, burst, weight, class, Some(keys)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("plan {}: {}", plan.plan, parts.join(", "))
}

/// The outcomes of all requests since the start.
fn verdicts(zone: &Zone) -> Vec<String> {
    let totals = &zone.totals;
    let all = [
        ("passed", totals.passed),
        ("delayed", totals.delayed),
        ("rejected", totals.rejected),
        ("cancelled", totals.cancelled),
        ("rejected elsewhere", totals.rejected_elsewhere),
        ("without a key", totals.no_key),
        ("delayed, dry run", totals.delayed_dry_run),
        ("rejected, dry run", totals.rejected_dry_run),
    ];
    let whole = all
        .iter()
        .fold(0_u64, |sum, (_, part)| sum.saturating_add(*part));
    // The dry run is rare, so it is shown only if it is in use.
    let shown = all
        .iter()
        .enumerate()
        .filter(|(at, (_, part))| *at < 4 || *part > 0);
    let mut lines: Vec<String> = shown
        .map(|(_, (name, part))| format!("{name:<18} {part:>9} {:>6}", share(*part, whole)))
        .collect();
    let reasons = zone.rejections.iter().filter(|(_, count)| **count > 0);
    let reasons: Vec<String> = reasons
        .map(|(why, count)| format!("{why} {count}"))
        .collect();
    if !reasons.is_empty() {
        lines.push(format!("rejected for: {}", reasons.join(", ")));
    }
    lines
}

fn keys(zone: &Zone) -> String {
    format!(
        "keys: {} active, {} parked, at most {}; idle ones kept {}",
        zone.keys.active,
        zone.keys.parked,
        zone.max_keys,
        wait(zone.idle_timeout_seconds)
    )
}
