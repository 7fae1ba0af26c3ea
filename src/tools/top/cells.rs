//! Formats JSON values as cells of a table, and cells as aligned columns.
//!
//! [`Plain`] escapes characters that could control a terminal.

use std::iter;

use gateway::status::Plain;
use jiff::Timestamp;
use limit::to_whole;
use serde_json::Value;

/// Formats aligned columns below an empty line. Returns nothing without rows.
///
/// `titles`: separated by commas. A column with `<` before its title is aligned left, the others
/// right.
pub(super) fn table(titles: &str, rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let titles = titles.split(", ");
    let (is_left, titles): (Vec<bool>, Vec<String>) = titles
        .map(|title| (title.starts_with('<'), title.replace('<', "")))
        .unzip();
    let all_rows: Vec<Vec<String>> = iter::once(titles).chain(rows).collect();
    if all_rows.len() == 1 {
        return Vec::new();
    }
    let lengths = |column: usize| all_rows.iter().map(move |row| row[column].chars().count());
    let widths = (0..is_left.len()).map(|column| lengths(column).max().unwrap_or(0));
    let widths: Vec<usize> = widths.collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(&is_left);
        let cells = cells.map(|((text, &width), is_left)| {
            if *is_left {
                format!("{text:<width$}")
            } else {
                format!("{text:>width$}")
            }
        });
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_owned()
    };
    iter::once(String::new())
        .chain(all_rows.iter().map(line))
        .collect()
}

/// Formats fields of a JSON object. `fields`: their names, separated by blanks.
///
/// A field in seconds has `/s` after its name, as in `oldest_wait/s`.
pub(super) fn cells(value: &Value, fields: &str) -> Vec<String> {
    let cell = |field: &str| match field.strip_suffix("/s") {
        Some(field) => show_seconds(&value[field]),
        None => show(&value[field]),
    };
    fields.split(' ').map(cell).collect()
}

/// Joins the parts that are `Some`, or returns a placeholder.
pub(super) fn join_parts<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        placeholder()
    } else {
        parts.join("; ")
    }
}

/// Returns the placeholder for a missing value.
pub(super) fn placeholder() -> String {
    "-".to_owned()
}

/// Formats a value without characters that control a terminal.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Null => placeholder(),
        Value::String(text) => Plain::new(text).to_string(),
        other => other.to_string(),
    }
}

/// Formats seconds with about three digits.
pub(super) fn show_seconds(value: &Value) -> String {
    match value.as_f64() {
        None => placeholder(),
        Some(seconds) if seconds < 10.0 => format!("{seconds:.2}s"),
        Some(seconds) if seconds < 100.0 => format!("{seconds:.1}s"),
        Some(seconds) => format!("{seconds:.0}s"),
    }
}

/// Formats a timestamp to the second. A text that is no timestamp is shown as it is.
pub(super) fn show_time(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    match text.parse::<Timestamp>() {
        Ok(time) => time.strftime("%F %T UTC").to_string(),
        Err(_) => show(value),
    }
}

/// Formats the time of day of a Unix time in seconds.
pub(super) fn time_of_day(seconds: f64) -> Option<String> {
    let time = Timestamp::from_second(i64::try_from(to_whole(seconds)).ok()?).ok()?;
    Some(time.strftime("%T UTC").to_string())
}
