//! The file as written: each table is read by a file of its own here.

mod limits;
mod log;
mod origins;
mod redis;
mod routes;
mod server;
mod tls;
mod url;
mod values;
mod zones;

pub use tls::unusable_certificates;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;
use std::{env, fs, io};

use toml::de::DeTable;

use super::near::nearest;
use super::read::{Fields, Node, Report};
use super::{LoadError, Problem, Problems, Settings};

/// Reads and checks a file. The admin port may be open to others than this host where the environment has
/// `DRIP_ADMIN_TOKEN`.
///
/// # Errors
///
/// The file cannot be read, or something is wrong with it: then everything that is.
pub fn load(path: &Path) -> Result<Settings, LoadError> {
    Ok(parse(&read(path)?, path, has_admin_token())?)
}

/// Whether the environment has a `DRIP_ADMIN_TOKEN`, which requests to the admin port then need.
#[must_use]
pub fn has_admin_token() -> bool {
    admin_token().is_some()
}

/// The `DRIP_ADMIN_TOKEN` of the environment, if it has one that is not empty. Blanks around it do not count: a file that
/// a token comes from mostly ends with a new line.
#[must_use]
pub fn admin_token() -> Option<Vec<u8>> {
    let token = env::var_os("DRIP_ADMIN_TOKEN").map(OsString::into_encoded_bytes)?;
    Some(token.trim_ascii().to_vec()).filter(|token| !token.is_empty())
}

/// Reads a file, without a look at what it says.
///
/// # Errors
///
/// The file cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, LoadError> {
    let failed = |source: io::Error| LoadError::Read {
        path: path.to_owned(),
        source,
    };
    String::from_utf8(fs::read(path).map_err(failed)?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let message = "this is not UTF-8; save the file in that encoding".to_owned();
        Problems::new(path, Problem::all(&text, vec![(valid, message)])).into()
    })
}

/// Checks the text of a file. `path` is where it is from: messages name it, and relative file names in it are
/// relative to its folder. `admin_token`: whether requests to the admin port need a token, so that it may be
/// open to others than this host.
///
/// # Errors
///
/// Something is wrong with it: then everything that is, by place.
pub fn parse(text: &str, path: &Path, admin_token: bool) -> Result<Settings, Problems> {
    let (file, errors) = DeTable::parse_recoverable(text);
    let report = Report::new(text, &errors);
    let settings = settings(Fields::root(&file, &report), path, admin_token, &report);
    let problems = report.into_problems();
    match settings {
        Some(settings) if problems.is_empty() => Ok(settings),
        _ => Err(Problems::new(path, problems)),
    }
}

fn settings(mut file: Fields, path: &Path, admin_token: bool, report: &Report) -> Option<Settings> {
    const ORIGIN: &str = "[origins.app] with servers = [\"http://127.0.0.1:9000\"]";
    const ROUTE: &str = "[[routes]] with path = \"/\" and origin = \"app\"";

    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute.parent().unwrap_or(&absolute);
    let server = server::read(file.section("server"), folder, admin_token);
    let (origin_names, origins) = file
        .get("origins")
        .map(|node| origins::read(node, folder))
        .unwrap_or_default();
    let (zone_names, zones) = file.get("zones").map(zones::read).unwrap_or_default();
    let redis = redis::read(file.section("redis"));
    let routes = file
        .get("routes")
        .map(|node| {
            let (names, zones) = (&zone_names[..], &zones[..]);
            routes::read(node, &origin_names, &limits::Zones { names, zones })
        })
        .unwrap_or_default();
    let log = log::read(file.section("log"), folder);

    if file.is_empty() {
        report.missing(
            0,
            format!("the file is empty; add at least {ORIGIN}, and {ROUTE}"),
        );
        return None;
    }
    if origin_names.is_empty() {
        report.missing(0, format!("there is no origin; add {ORIGIN}"));
    }
    if routes.is_empty() {
        report.missing(0, format!("there is no route; add {ROUTE}"));
    }
    file.finish();
    Some(Settings {
        server,
        origins: origins.into_iter().collect::<Option<_>>()?,
        zones: zones.into_iter().collect::<Option<_>>()?,
        redis,
        routes: routes.into_iter().collect::<Option<_>>()?,
        log,
    })
}

/// What routes call origins or zones by, in the order of the file.
type Names<'r> = Vec<&'r str>;

/// Reads a table of named things. Each name is there even where its thing is wrong, so that a route that uses
/// it is not blamed.
fn named<'r, T>(
    node: Node<'r>,
    read: impl Fn(Fields<'r>, String) -> Option<T>,
) -> (Names<'r>, Vec<Option<T>>) {
    let Some(entries) = node.entries() else {
        node.expected::<()>(&format!("a table for each, such as [{}.name]", node.name));
        return Default::default();
    };
    let things = entries.iter().map(|entry| {
        let name = entry.name.to_owned();
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            entry.wrong("a name is made of letters, digits, _, - and .");
        }
        read(Fields::of(*entry, format!("[{}.{name}]", node.name))?, name)
    });
    (
        entries.iter().map(|entry| entry.name).collect(),
        things.collect(),
    )
}

/// The names that a message lists: a file may have thousands.
fn list(names: &[&str]) -> String {
    const MOST: usize = 20;
    let shown = names[..names.len().min(MOST)].join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The index of what a route names.
fn index(node: Node, table: &str, names: &[&str]) -> Option<usize> {
    let name = values::text(node)?;
    let index = names.iter().position(|known| *known == name);
    if index.is_none() {
        let known = match (nearest(name, names), names) {
            (_, []) => format!("the file has none; add [{table}.{name}]"),
            (Some(near), [_]) => format!("did you mean \"{near}\"?"),
            (Some(near), _) => {
                format!("did you mean \"{near}\"? The file has {}", list(names))
            }
            (None, _) => format!("the file has {}", list(names)),
        };
        node.missing(&format!("there is no [{table}.{name}]; {known}"));
    }
    index
}
