//! Series in the text format of Prometheus, for many things of one kind, such as all zones.
//!
//! A series is one line: the name of a metric, labels such as `zone="api"`, and a value.
//! `families.txt` has the type and the help text of each name.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::sync::LazyLock;

use crate::observe::metrics::{CountBy, DurationHistogram, Label, SECONDS};

/// Type and help text of each metric, by name.
static FAMILIES: LazyLock<HashMap<&str, (&str, &str)>> = LazyLock::new(|| {
    let lines = include_str!("families.txt").lines();
    let families = lines.filter_map(|line| {
        let (name, type_and_help) = line.split_once(' ')?;
        Some((name, type_and_help.split_once(' ')?))
    });
    families.collect()
});

/// Writes the series of all things of one kind.
pub(crate) struct Table<'o, T> {
    /// Text that the series are added to.
    out: &'o mut String,
    /// Things with the labels of their series, such as `zone="api"`.
    things: Vec<(String, T)>,
}

impl<'o> Table<'o, ()> {
    /// Creates a table of the process: of one thing without labels.
    pub(crate) fn of_process(out: &'o mut String) -> Self {
        Self::new(out, [(String::new(), ())])
    }
}

impl<'o, T> Table<'o, T> {
    /// Creates a table of these things, each with its labels.
    pub(crate) fn new(out: &'o mut String, things: impl IntoIterator<Item = (String, T)>) -> Self {
        let things = things.into_iter().collect();
        Self { out, things }
    }

    /// Writes all series of the metric `name`; nothing if no thing has any.
    ///
    /// `series` adds the series of one thing.
    pub(crate) fn write(&mut self, name: &str, series: impl Fn(&T, &mut Series)) {
        let length_before = self.out.len();
        let (kind, help) = FAMILIES.get(name).copied().unwrap_or(("untyped", ""));
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        let length_with_head = self.out.len();
        for (labels, thing) in &self.things {
            let out = &mut *self.out;
            series(thing, &mut Series { out, name, labels });
        }
        if self.out.len() == length_with_head {
            self.out.truncate(length_before);
        }
    }
}

impl<T> Table<'_, T> {
    /// Writes one series for each thing, without further labels.
    pub(crate) fn value<V: Display>(&mut self, name: &str, value: impl Fn(&T) -> V) {
        self.some(name, |thing| Some(value(thing)));
    }

    /// Writes one series for each thing whose value is known (`Some`).
    pub(crate) fn some<V: Display>(&mut self, name: &str, value: impl Fn(&T) -> Option<V>) {
        self.write(name, |thing, series| {
            if let Some(value) = value(thing) {
                series.line("", "", value);
            }
        });
    }

    /// Writes one series for each thing and each value of a label.
    pub(crate) fn counts<L: Label>(
        &mut self,
        name: &str,
        label: &str,
        counts: impl Fn(&T) -> &CountBy<L>,
    ) {
        self.write(name, |thing, series| {
            series.each(label, counts(thing).each());
        });
    }

    /// Writes one series for each thing and each of the given values of a label.
    pub(crate) fn each<V: Display, const N: usize>(
        &mut self,
        name: &str,
        label: &str,
        values: impl Fn(&T) -> [(&'static str, V); N],
    ) {
        self.write(name, |thing, series| series.each(label, values(thing)));
    }

    /// Writes a histogram for each thing.
    pub(crate) fn durations(&mut self, name: &str, durations: impl Fn(&T) -> &DurationHistogram) {
        self.write(name, |thing, series| series.durations("", durations(thing)));
    }
}

/// The series of one thing under one name.
pub(crate) struct Series<'o> {
    out: &'o mut String,
    name: &'o str,
    labels: &'o str,
}

impl Series<'_> {
    /// Adds a series for each value of one more label.
    pub(crate) fn each<'v, V: Display>(
        &mut self,
        label: &str,
        values: impl IntoIterator<Item = (&'v str, V)>,
    ) {
        for (text, value) in values {
            self.line("", &labels(&[(label, text)]), value);
        }
    }

    /// Adds the series of a histogram. `more`: a further label.
    pub(crate) fn durations(&mut self, more: &str, durations: &DurationHistogram) {
        let comma = if more.is_empty() { "" } else { "," };
        // Number of durations up to each edge, and of all durations.
        let (counts, all) = durations.cumulative();
        for (edge, count) in SECONDS.into_iter().zip(counts) {
            self.line("_bucket", &format!("{more}{comma}le=\"{edge}\""), count);
        }
        self.line("_bucket", &format!("{more}{comma}le=\"+Inf\""), all);
        self.line("_sum", more, durations.seconds());
        self.line("_count", more, all);
    }

    /// Writes one line. `more`: further labels.
    fn line(&mut self, suffix: &str, more: &str, value: impl Display) {
        let Self { out, name, labels } = self;
        let comma = if labels.is_empty() || more.is_empty() {
            ""
        } else {
            ","
        };
        let all = format!("{labels}{comma}{more}");
        let _ = match &*all {
            "" => writeln!(out, "{name}{suffix} {value}"),
            all => writeln!(out, "{name}{suffix}{{{all}}} {value}"),
        };
    }
}

/// Formats labels in Prometheus's text format.
pub(crate) fn labels(labels: &[(&str, &str)]) -> String {
    let escaped = |text: &str| {
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    };
    let labels = labels
        .iter()
        .map(|(name, text)| format!("{name}=\"{}\"", escaped(text)));
    labels.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::observe::key_names::KeyNames;

    #[test]
    fn series_are_written_as_prometheus_reads_them() {
        let durations = DurationHistogram::default();
        for micros in [100, 200, 2_500_000, 100_000_000] {
            durations.record(Duration::from_micros(micros));
        }
        let key = KeyNames::at_gate(None).short(b"a\"\\\n\xff<script>");
        let mut out = String::new();
        let mut table = Table::new(&mut out, [(labels(&[("zone", "z")]), 3)]);
        table.write("drip_zone_rate", |_, _| {});
        table.write("drip_zone_queue_depth", |value, series| {
            series.line("", "", value);
            series.each("key", [(&*key, value)]);
        });
        table.write("drip_zone_queue_wait_seconds", |_, series| {
            series.durations("", &durations);
        });
        Table::of_process(&mut out).write("drip_store_duration_seconds", |(), series| {
            series.durations("", &durations);
        });
        let begin = "# HELP drip_zone_queue_depth Requests waiting in the zone, all keys together.\n\
                     # TYPE drip_zone_queue_depth gauge\ndrip_zone_queue_depth{zone=\"z\"} 3\n\
                     drip_zone_queue_depth{zone=\"z\",key=\"a\\\"\\\\\\\\\\\\x0A\\\\xFF<script>\"} 3\n\
                     # HELP drip_zone_queue_wait_seconds How long requests waited for their turn.\n\
                     # TYPE drip_zone_queue_wait_seconds histogram\n\
                     drip_zone_queue_wait_seconds_bucket{zone=\"z\",le=\"0.0001\"} 1\n\
                     drip_zone_queue_wait_seconds_bucket{zone=\"z\",le=\"0.00025\"} 2\n";
        assert!(out.starts_with(begin), "{out}");
        for line in [
            "drip_zone_queue_wait_seconds_bucket{zone=\"z\",le=\"1\"} 2",
            "drip_zone_queue_wait_seconds_bucket{zone=\"z\",le=\"2.5\"} 3",
            "drip_zone_queue_wait_seconds_bucket{zone=\"z\",le=\"60\"} 3",
            "drip_zone_queue_wait_seconds_bucket{zone=\"z\",le=\"+Inf\"} 4",
            "drip_zone_queue_wait_seconds_sum{zone=\"z\"} 102.5003",
            "drip_zone_queue_wait_seconds_count{zone=\"z\"} 4",
            "drip_store_duration_seconds_bucket{le=\"0.0001\"} 1",
            "drip_store_duration_seconds_sum 102.5003",
        ] {
            assert!(
                out.lines().any(|written_line| written_line == line),
                "{line}\n{out}"
            );
        }
    }

    #[test]
    fn each_name_has_a_type_and_a_help_text_and_is_written() {
        // The source text of all files that write metrics.
        let mut code = String::new();
        let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))];
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.ends_with("exposition.rs") || path.ends_with("metrics.rs") {
                    code.push_str(&std::fs::read_to_string(path).unwrap());
                }
            }
        }
        let names = code
            .split('"')
            .filter(|text| text.starts_with("drip_") || text.starts_with("process_"));
        let is_name_character = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let names = names.filter(|text| text.bytes().all(is_name_character));
        // A text that ends with `_` is the beginning of a name.
        let names = names.filter(|text| !text.ends_with('_'));
        let written: std::collections::BTreeSet<_> = names.collect();
        assert_eq!(written, FAMILIES.keys().copied().collect());
    }
}
