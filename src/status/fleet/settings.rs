use std::collections::BTreeMap;

use toml::{Table, Value};

/// Tables that must be the same at all gateways. Addresses, names, logs and the way to Redis are
/// each gateway's own.
const TABLES: [&str; 3] = ["zones", "origins", "routes"];

/// Fields whose values begin with a slash and name no file.
const PATHS: [&str; 3] = ["path", "strip_prefix", "add_prefix"];

/// The settings of a gateway that must be the same at all, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedSettings(BTreeMap<String, String>);

/// A setting that differs between two gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference<'s> {
    pub(super) name: &'s str,
    /// `None`: there is no such setting.
    pub(super) values: [Option<&'s str>; 2],
}

impl SharedSettings {
    /// Reads the settings as a gateway shows them, as TOML. What cannot be read is empty.
    pub(crate) fn read(text: &str) -> Self {
        let mut all = BTreeMap::new();
        let table: Table = text.parse().unwrap_or_default();
        for name in TABLES {
            if let Some(value) = table.get(name) {
                flatten(name, "", value, &mut all);
            }
        }
        Self(all)
    }

    /// Whether the zone masks the names of its keys.
    pub(super) fn masks_keys(&self, zone: &str) -> bool {
        let name = part("zones", zone) + ".mask_keys";
        self.0.get(&name).is_some_and(|value| value == "true")
    }

    /// The settings that differ, by their names.
    ///
    /// `of_one_version`: both gateways know the same fields. Else, what only one of them shows is
    /// passed over.
    pub(super) fn differences<'s>(
        &'s self,
        other: &'s Self,
        of_one_version: bool,
    ) -> Vec<Difference<'s>> {
        let mut names: Vec<&str> = self
            .0
            .keys()
            .chain(other.0.keys())
            .map(|it| &**it)
            .collect();
        names.sort_unstable();
        names.dedup();
        let both = names.into_iter().map(|name| Difference {
            name,
            values: [self, other].map(|it| it.0.get(name).map(|it| &**it)),
        });
        let differ = both.filter(|it| match it.values {
            [Some(a), Some(b)] => a != b,
            _ => of_one_version,
        });
        differ.collect()
    }

    /// Whether nothing could be read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes the values of a table with the names that lead to them.
fn flatten(name: &str, field: &str, value: &Value, all: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) => {
            for (field, value) in table {
                flatten(&part(name, field), field, value, all);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_table) && name == "routes" => {
            for item in items {
                flatten(&route(item, all), "", item, all);
            }
        }
        value => {
            all.insert(name.to_owned(), plain(field, value).to_string());
        }
    }
}

/// A value without the folders of the files that it names: each gateway may have its own.
fn plain(field: &str, value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(|item| plain(field, item)).collect()),
        Value::String(text) if !PATHS.contains(&field) => {
            let (kind, path) = match text.strip_prefix("unix:") {
                Some(path) => ("unix:", path),
                None => ("", &**text),
            };
            let file = path.strip_prefix('/').and(path.rsplit('/').next());
            file.map_or_else(|| value.clone(), |file| format!("{kind}{file}").into())
        }
        value => value.clone(),
    }
}

/// The name of a route: its hosts and path. A second one of the same name gets a number.
fn route(route: &Value, all: &BTreeMap<String, String>) -> String {
    let text = |field| route.get(field).map(ToString::to_string);
    let parts: Vec<String> = ["host", "path"].into_iter().filter_map(text).collect();
    let name = format!("route {}", parts.join(" "));
    let is_there = |name: &str| {
        let prefix = format!("{name}.");
        let mut after = all.range(prefix.clone()..);
        after.next().is_some_and(|(it, _)| it.starts_with(&prefix))
    };
    if !is_there(&name) {
        return name;
    }
    let mut numbered = (2_u32..).map(|nth| format!("{name} ({nth})"));
    numbered.find(|name| !is_there(name)).unwrap_or(name)
}

fn part(name: &str, field: &str) -> String {
    format!("{name}.{field}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[server]
name = "a"
peers = ["http://b:9090"]
[zones.z]
rate = "10r/s"
mask_keys = true
[origins.app]
servers = ["http://127.0.0.1:9000", "unix:/etc/a/app.sock"]
ca = "/etc/a/ca.pem"
[redis]
url = "redis://localhost/0"
[[routes]]
path = "/a/x"
limits = [{ zone = "z", burst = 5 }]
[[routes]]
path = "/a/x"
methods = ["GET"]
"#;

    fn differing(other: &str, of_one_version: bool) -> Vec<String> {
        let (a, b) = (SharedSettings::read(TEXT), SharedSettings::read(other));
        let differences = a.differences(&b, of_one_version);
        let text = |it: Option<&str>| it.unwrap_or("-").to_owned();
        let line = |it: &Difference| {
            let [a, b] = &it.values;
            format!("{}: {} {}", it.name, text(*a), text(*b))
        };
        differences.iter().map(line).collect()
    }

    #[test]
    fn what_each_gateway_has_of_its_own_is_no_difference() {
        let other = TEXT
            .replace("name = \"a\"", "name = \"b\"")
            .replace("/etc/a/", "/srv/")
            .replace("localhost", "redis.internal")
            .replace("b:9090", "a:9090");
        assert_eq!(differing(&other, true), Vec::<String>::new());
        assert!(SharedSettings::read(TEXT).masks_keys("z"));
        assert!(!SharedSettings::read(TEXT).masks_keys("y"));
    }

    #[test]
    fn what_must_be_the_same_is_named() {
        let other = TEXT
            .replace("10r/s", "20r/s")
            .replace("burst = 5", "burst = 6");
        assert_eq!(
            differing(&other, true),
            [
                r#"route "/a/x".limits: [{ burst = 5, zone = "z" }] [{ burst = 6, zone = "z" }]"#,
                r#"zones.z.rate: "10r/s" "20r/s""#,
            ]
        );
        let path = TEXT.replacen("/a/x", "/b/x", 1);
        assert_eq!(
            differing(&path, true).len(),
            6,
            "{:?}",
            differing(&path, true)
        );
    }

    #[test]
    fn another_version_may_have_other_fields_but_no_other_values() {
        let other = TEXT.replace("mask_keys = true", "new = 1\nrate_2 = 2");
        assert_eq!(differing(&other, false), Vec::<String>::new());
        assert_eq!(differing(&other, true).len(), 3);
        let other = other.replace("10r/s", "20r/s");
        assert_eq!(differing(&other, false).len(), 1);
    }

    #[test]
    fn what_is_no_settings_is_empty() {
        for text in ["", "]", "zones = 3", "\u{0}"] {
            let read = SharedSettings::read(text);
            assert!(read.is_empty() || text == "zones = 3", "{text:?}: {read:?}");
        }
    }
}
