//! The zones, one a line.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, TableState};

use super::numbers::{sparkline, wait};
use super::{Paint, View, overridden};
use crate::tools::top::model;
use crate::tools::top::page::Panel;

/// Seconds that a sparkline in the table shows.
const SECONDS: usize = 300;

const MIN_SPARKLINE: u16 = 8;
const MAX_SPARKLINE: u16 = 60;

/// Title, width and text of a column; no text where nothing is known.
type Column = (&'static str, u16, fn(&model::Row) -> Option<String>);

/// The columns after the name, from left to right.
pub(in crate::tools::top) const COLUMNS: [Column; 9] = [
    ("rate", 9, |row| Some(row.rate.to_string())),
    ("in/s", 6, |row| Some(row.came.to_string())),
    ("out/s", 6, |row| Some(row.now.out().to_string())),
    ("depth", 6, |row| Some(row.now.depth.to_string())),
    ("deepest", 7, |row| Some(row.now.depth_max.to_string())),
    ("oldest", 6, |row| Some(wait(row.now.oldest_wait))),
    ("p95", 6, |row| row.now.wait_p95.map(wait)),
    ("rej/s", 5, |row| Some(row.now.rejected.to_string())),
    ("keys", 7, |row| Some(row.now.keys.to_string())),
];

/// Indexes of columns by importance. If there is no room for all, the last ones are left out.
const BY_WORTH: [usize; 9] = [0, 1, 2, 3, 7, 5, 6, 4, 8];

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let rows = view.shown().rows();
    let block = view.block("zones", Some(Panel::Zones));
    if rows.is_empty() {
        let text = "the file has no zones, so nothing is limited";
        let text = Text::styled(text, Paint::faint());
        let widget = ratatui::widgets::Paragraph::new(text).block(block);
        return frame.render_widget(widget, area);
    }
    // Subtracts the frame and the mark of the selected row.
    let width = area.width.saturating_sub(4);
    let longest = rows.iter().map(|row| Line::raw(name_of(row)).width());
    let longest = u16::try_from(longest.max().unwrap_or(0)).unwrap_or(u16::MAX);
    let name = longest.clamp(8, 36);
    let (columns, left) = fitting(width.saturating_sub(name));
    let spark = left.saturating_sub(1).min(MAX_SPARKLINE);
    let spark = (spark >= MIN_SPARKLINE).then_some(spark);

    let right = |text: String| Cell::from(Text::from(text).alignment(Alignment::Right));
    let mut heading = vec![Cell::from("zone")];
    heading.extend(columns.iter().map(|(title, ..)| right((*title).to_owned())));
    heading.extend(spark.map(|_| Cell::from("depth, 5 min")));
    let body = rows.iter().map(|row| {
        let mut cells = vec![Cell::from(name_of(row))];
        for (title, _, text) in &columns {
            let cell = right(text(row).unwrap_or("–".to_owned()));
            let alarm = *title == "rej/s" && row.now.rejected > 0;
            cells.push(if alarm {
                cell.style(view.paint.bad())
            } else {
                cell
            });
        }
        cells.extend(spark.map(|width| {
            let line = sparkline(&row.depths, width.into(), SECONDS);
            Cell::from(line).style(view.paint.water())
        }));
        Row::new(cells)
    });
    let mut widths = vec![Constraint::Length(name)];
    widths.extend(
        columns
            .iter()
            .map(|(_, width, _)| Constraint::Length(*width)),
    );
    widths.extend(spark.map(Constraint::Length));
    let table = Table::new(body, widths)
        .header(Row::new(heading).style(Paint::faint()))
        .column_spacing(1)
        .highlight_symbol("> ")
        .row_highlight_style(Paint::strong())
        .block(block);
    let selected = view.page.selected(view.shown().zones());
    let mut state = TableState::new().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut state);
}

/// The name, and what is not as in the file.
fn name_of(row: &model::Row) -> String {
    match overridden::short(&row.now) {
        Some(what) => format!("{} [{what}]", row.name),
        None => row.name.to_string(),
    }
}

/// The columns that fit into `room`, and the room that remains.
fn fitting(mut room: u16) -> (Vec<Column>, u16) {
    let mut places = Vec::new();
    for place in BY_WORTH {
        let width = COLUMNS[place].1 + 1;
        if width > room {
            break;
        }
        room -= width;
        places.push(place);
    }
    places.sort_unstable();
    (
        places.into_iter().map(|place| COLUMNS[place]).collect(),
        room,
    )
}
