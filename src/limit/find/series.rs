//! One series of Prometheus' text format: a name and labels.

/// A series, and what follows it on its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series<'a> {
    pub name: &'a str,
    pub labels: Vec<(&'a str, String)>,
    pub rest: &'a str,
}

/// Reads `node_load1 0.5` or `up{job="app"} 1`; `None` if the line is none.
pub(super) fn series(line: &str) -> Option<Series<'_>> {
    let line = line.trim_start();
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let end = line.find(|c: char| !is_in_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() {
        return None;
    }
    let mut labels = Vec::new();
    let Some(mut inside) = rest.trim_start().strip_prefix('{') else {
        return Some(Series { name, labels, rest });
    };
    loop {
        inside = inside.trim_start_matches([' ', ',']);
        if let Some(rest) = inside.strip_prefix('}') {
            return Some(Series { name, labels, rest });
        }
        let (label, value) = inside.split_once('=')?;
        let (value, rest) = quoted(value.trim_start())?;
        labels.push((label.trim(), value));
        inside = rest;
    }
}

/// A text between quotes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_values_are_told_apart() {
        let it = series(r#"up{job="a\"b,}", path="C:\\x" ,} 1 1700000000"#).unwrap();
        assert_eq!((it.name, it.rest.trim()), ("up", "1 1700000000"));
        let expected = [("job", "a\"b,}".to_owned()), ("path", "C:\\x".to_owned())];
        assert_eq!(it.labels, expected);
        let it = series("node_load1 0.5").unwrap();
        assert!(it.labels.is_empty() && it.rest == " 0.5");
        for wrong in ["", "# HELP a", "up{job=\"a", "up{job=a} 1", "{a=\"b\"} 1"] {
            assert_eq!(series(wrong), None, "{wrong}");
        }
    }
}
