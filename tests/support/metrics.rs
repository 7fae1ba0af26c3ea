//! Reads the text of `/metrics`.

/// The text of `/metrics` at one instant.
#[derive(Clone, Debug)]
pub struct Metrics(pub String);

impl Metrics {
    /// Returns the sum of all series of this name with these labels; `None` if there is none.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let expected: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let values = self.0.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (found, rest) = series.split_once('{').unwrap_or((series, ""));
            let has = |label: &String| rest.contains(label.as_str());
            (found == name && expected.iter().all(has)).then(|| value.parse::<f64>().ok())?
        });
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// Returns the same sum as a whole number; 0 if there is no series.
    #[allow(clippy::cast_possible_truncation)]
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> i64 {
        self.value(name, labels).unwrap_or(0.0).round() as i64
    }
}
