use super::report::Column;
use super::tally::{CAME, INSIDE, LET_IN, LOST, POLLS, ROWS, SEEN, WAITING};
use crate::replay::Timeline;
use crate::tools::plot::{Chart, Panel, number, seconds, stairs};

/// Most columns of a rate.
const MAX_RATE_COLUMNS: usize = 240;

/// A chart of the visitors under each file.
pub(super) fn chart(columns: &[Column<'_>]) -> Chart {
    let lines = || columns.iter().map(|it| (it, &it.result.tally.timeline));
    let widths = lines().map(|(_, line)| line.width_of(MAX_RATE_COLUMNS));
    let width = widths.max().unwrap_or_default();
    let ends = lines().map(|(_, line)| number(line.columns().len() as u64) * seconds(line.width()));
    let end = ends.fold(0.0, f64::max);
    let is_one = columns.len() == 1;
    let mut chart = Chart::new("Visitors before the room")
        .x_label("seconds")
        .same_x();
    for (column, line) in lines() {
        let label = if is_one {
            "visitors a second".to_owned()
        } else {
            format!("{}, visitors a second", column.file)
        };
        let panel = Panel::new(label)
            .step("came", &pace(line, CAME, width))
            .step("let in", &pace(line, LET_IN, width))
            .step("lost their turn", &pace(line, LOST, width));
        chart = chart.panel(panel.x_to(end).height(if is_one { 180 } else { 110 }));
    }
    let mut panels = [
        ("visitors waiting", WAITING),
        ("visitors inside", INSIDE),
        ("polls a second", POLLS),
    ]
    .map(|(label, row)| (Panel::new(label), row));
    for (column, line) in lines() {
        let name = if is_one { "" } else { column.file };
        panels = panels.map(|(panel, row)| {
            let points = match row {
                POLLS => pace(line, POLLS, width),
                _ => level(line, row),
            };
            (panel.step(name, &points), row)
        });
    }
    let panels = panels.into_iter();
    panels.fold(chart, |chart, (panel, _)| chart.panel(panel.x_to(end)))
}

/// A row in a second, in columns of at least `width` nanoseconds.
fn pace(line: &Timeline<ROWS>, row: usize, width: u64) -> Vec<(f64, f64)> {
    let line = line.coarser(width);
    let width = seconds(line.width());
    let values = line.columns().iter();
    stairs(values.map(|column| number(column[row]) / width), width)
}

/// The most of each column. Where nothing happened, it is as before.
fn level(line: &Timeline<ROWS>, row: usize) -> Vec<(f64, f64)> {
    let mut level = 0;
    let levels = line.columns().iter().map(|column| {
        if column[SEEN] > 0 {
            level = column[row];
        }
        number(level)
    });
    stairs(levels, seconds(line.width()))
}
