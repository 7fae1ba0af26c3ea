//! Text in lines of a width.

use ratatui::text::Span;

/// Maximum number of lines of one text. Texts have names from files and from the network.
const MAX_LINES: usize = 6;

/// The lines of a text that is broken at spaces, and within words that are too wide for a line.
///
/// A text that needs more than [`MAX_LINES`] ends with "...".
pub(in crate::tools::top) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(4);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let wide = columns(word);
        if used > 0 && used + 1 + wide <= width {
            push(&mut lines, " ");
            used += 1;
        } else if used > 0 {
            lines.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let mut bytes = [0; 4];
            let c: &str = c.encode_utf8(&mut bytes);
            let wide = columns(c);
            if used + wide > width {
                lines.push(String::new());
                used = 0;
            }
            push(&mut lines, c);
            used += wide;
        }
        if lines.len() > MAX_LINES {
            break;
        }
    }
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        if let Some(last) = lines.last_mut() {
            while columns(last) + 3 > width {
                last.pop();
            }
            last.push_str("...");
        }
    }
    lines
}

fn push(lines: &mut [String], text: &str) {
    if let Some(last) = lines.last_mut() {
        last.push_str(text);
    }
}

/// How many columns of a terminal a text takes.
fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_spaces_and_keep_every_word() {
        let text = "30 requests wait in per_client, the oldest for 20 s";
        assert_eq!(
            wrap(text, 20),
            ["30 requests wait in", "per_client, the", "oldest for 20 s"]
        );
        assert_eq!(wrap(text, 80), [text]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn long_words_are_broken_and_long_texts_are_cut_off() {
        assert_eq!(wrap("a 0123456789", 5), ["a", "01234", "56789"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        let lines = wrap(&"word ".repeat(1000), 20);
        assert_eq!(lines.len(), MAX_LINES);
        assert!(lines[MAX_LINES - 1].ends_with("..."), "{lines:?}");
        assert!(lines.iter().all(|line| columns(line) <= 20), "{lines:?}");
    }
}
