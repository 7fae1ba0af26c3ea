//! A terminal emulator with the functions that `drip top` needs.

/// Returns the lines of a screen of this many columns and lines.
pub fn lines(bytes: &[u8], columns: usize, lines: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut cells = vec![vec![' '; columns]; lines];
    let (mut row, mut column) = (0, 0);
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '\x1b' => match letters.next() {
                Some('[') => {
                    let (numbers, what) = sequence(&mut letters);
                    let number = |at: usize| numbers.get(at).copied().unwrap_or(1).max(1) - 1;
                    match what {
                        'H' => (row, column) = (number(0), number(1)),
                        // To the end of the line, and of the screen.
                        'K' => clear(&mut cells, row, column, row + 1),
                        'J' => clear(&mut cells, row, column, lines),
                        _ => {}
                    }
                }
                other => panic!("ESC {other:?}"),
            },
            '\r' => column = 0,
            '\n' => row += 1,
            c => {
                assert!(!c.is_control(), "{c:?}");
                if let Some(cell) = cells.get_mut(row).and_then(|line| line.get_mut(column)) {
                    *cell = c;
                }
                column += 1;
            }
        }
    }
    let line = |cells: Vec<char>| cells.into_iter().collect::<String>().trim_end().to_owned();
    cells.into_iter().map(line).collect()
}

/// Clears a line from `column` on, and the lines below it before `end`.
fn clear(cells: &mut [Vec<char>], row: usize, column: usize, end: usize) {
    let from = |at| if at == row { column } else { 0 };
    for (at, line) in cells.iter_mut().enumerate().take(end).skip(row) {
        let from = from(at).min(line.len());
        line[from..].fill(' ');
    }
}

/// Returns the numbers and the last letter of a control sequence.
fn sequence(letters: &mut impl Iterator<Item = char>) -> (Vec<usize>, char) {
    let mut text = String::new();
    let what = letters.by_ref().find(|c| {
        text.push(*c);
        c.is_ascii_alphabetic()
    });
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    (
        numbers.filter_map(|number| number.parse().ok()).collect(),
        what.unwrap_or('?'),
    )
}
