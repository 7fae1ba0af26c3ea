/// Aligns rows in columns. The columns in `left` are texts, the others numbers.
pub(super) fn columns(rows: &[Vec<String>], left: &[usize]) -> Vec<String> {
    let count = rows.first().map_or(0, Vec::len);
    let wide = |text: &str| ratatui::text::Span::raw(text).width();
    let widest = |at: usize| {
        rows.iter()
            .map(|row| wide(&row[at]))
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(at, text)| {
            let fill = " ".repeat(widths[at] - wide(text));
            if left.contains(&at) {
                format!("{text}{fill}")
            } else {
                format!("{fill}{text}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
