//! Reads and checks `gateway.toml`: from its text to `Settings`.
//!
//! `include` reads further files, `environment` expands variables, and `warnings` finds legal
//! values that are probably mistakes. `reread` locates values again. Each table of the file is read
//! in `tables`.

mod environment;
mod include;
mod reread;
mod warnings;

pub use reread::{FileField, admin_of_broken, at_fields};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use toml::de::DeTable;

use self::environment::UnexpandedValues;
use super::admin_tokens::has_admin_token;
use super::fields::Fields;
use super::node::Node;
use super::regular_file::read_at_most;
use super::report::{Report, Shared};
use super::settings::InputNames;
use super::table_settings::TableSettings;
use super::tables::file::{FILE, INCLUDED};
use super::tables::names::join_names;
use super::tables::plan_keys::MAX_FILE_SIZE;
use super::tables::{jwt, limit, origin, redis, routes, server, zone};
use super::{LoadError, Log, Origin, Problem, Problems, Redis, RequestInputs, Server, Settings};

/// Reads and checks a file.
///
/// The admin port may be open to other hosts if the environment has a token for it.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or an error with all problems of the file.
pub fn load(path: &Path) -> Result<Settings, LoadError> {
    Ok(parse(&read(path)?, path, has_admin_token())?)
}

/// Reads a file as text, without checking its content.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, LoadError> {
    let failed = |source: io::Error| LoadError::Read {
        path: path.to_owned(),
        source,
    };
    let file = fs::File::open(path).map_err(failed)?;
    let text = read_at_most(file, MAX_FILE_SIZE).map_err(failed)?;
    String::from_utf8(text).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let message = "this is not UTF-8; save the file in that encoding".to_owned();
        Problems::new(path, Problem::locate(&text, vec![(offset, message)])).into()
    })
}

/// Checks the text of a file.
///
/// `path`: the file's path. Messages contain it, and relative file names in the text start at its
/// folder. `admin_token`: whether a token protects the admin port. Without one, the port must not
/// be open to other hosts.
///
/// # Errors
///
/// Returns an error with all problems of the text, sorted by location.
pub fn parse(text: &str, path: &Path, admin_token: bool) -> Result<Settings, Problems> {
    // Data that the reports of the file and of its included files share.
    let shared = Shared::default();
    parse_in(text, path, admin_token, &environment::of_process, &shared)
}

/// Checks a text as [`parse`] does, for a reload that replaces the settings `in_force`.
///
/// Problems show no keys of zones that mask their keys in `in_force`, even if `text` does not mask
/// them: it may have a mistake in `mask_keys`.
pub fn parse_after(
    in_force: &Settings,
    text: &str,
    path: &Path,
    admin_token: bool,
) -> Result<Settings, Problems> {
    let masked_zones = in_force.zones.iter().filter(|zone| zone.mask_keys);
    let mut shared = Shared::default();
    shared.masked_zones = masked_zones.map(|zone| zone.name.clone()).collect();
    parse_in(text, path, admin_token, &environment::of_process, &shared)
}

/// Checks a text as [`parse`] does. `variable`: lookup of variables of the environment.
fn parse_in(
    text: &str,
    path: &Path,
    admin_token: bool,
    variable: environment::Variable,
    shared: &Shared,
) -> Result<Settings, Problems> {
    let absolute = absolute(path);
    let folder = absolute.parent().unwrap_or(&absolute);
    let (mut file, report) = Report::parse(text, path, folder, shared);
    // Variables are replaced in the tables. `unexpanded` keeps the values as the files write them.
    // The last argument is the number of routes in the files before: the first file has none.
    let mut unexpanded = environment::expand(file.get_mut(), &report, variable, 0);
    let mut route_count = count_routes(file.get_ref());
    let mut main = Fields::root(FILE, &file, &report);

    let included = main.get("include").map(|node| include::read(node, path));
    let included = included.unwrap_or_default();
    let mut tables = Vec::new();
    let mut reports = Vec::new();
    for file in &included {
        let (mut table, mut report) = Report::parse(&file.text, &file.path, &file.folder, shared);
        report.is_included = true;
        let values = environment::expand(table.get_mut(), &report, variable, route_count);
        unexpanded.extend(values);
        route_count += count_routes(table.get_ref());
        tables.push(table);
        reports.push(report);
    }
    let included = tables.iter().zip(&reports);
    let included = included.map(|(table, report)| Fields::root(INCLUDED, table, report));
    let files = Files {
        main,
        included: included.collect(),
    };
    let settings = read_settings(files, admin_token, &report);

    let reports = || std::iter::once(&report).chain(&reports);
    let problems: Vec<Problem> = reports().flat_map(|it| it.take(&it.problems)).collect();
    let warnings = reports().flat_map(|it| it.take(&it.warnings)).collect();
    let named = shared.named.take();
    match settings {
        Some(settings) if problems.is_empty() => Ok(Settings {
            named,
            warnings,
            from_environment: unexpanded,
            ..settings
        }),
        _ => Err(Problems {
            named,
            ..Problems::new(path, problems)
        }),
    }
}

/// Returns a path as absolute, or unchanged if the current folder is unknown.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the number of `[[routes]]` of a file.
fn count_routes(file: &DeTable) -> usize {
    let routes = file.get("routes").and_then(|it| it.get_ref().as_array());
    routes.map_or(0, |routes| routes.len())
}

/// The tables of the configuration file, and of the files that it includes.
struct Files<'r> {
    main: Fields<'r>,
    included: Vec<Fields<'r>>,
}

impl<'r> Files<'r> {
    /// Returns the values of a top-level field, one per file that has it.
    fn get(&mut self, name: &'static str) -> Vec<Node<'r>> {
        let files = std::iter::once(&mut self.main).chain(&mut self.included);
        files.filter_map(|fields| fields.get(name)).collect()
    }

    /// Reports unknown fields.
    fn finish(self) {
        self.main.finish();
        for fields in self.included {
            fields.finish();
        }
    }
}

/// Reads the settings of all files.
///
/// The order matters: a table is read after the tables whose names it uses. `report`: the report of
/// the configuration file itself. Returns `None` if a part is wrong.
fn read_settings(mut files: Files, admin_token: bool, report: &Report) -> Option<Settings> {
    if files.main.is_empty() {
        let message =
            format!("the file is empty; add at least {ORIGIN_EXAMPLE}, and {ROUTE_EXAMPLE}");
        report.add_missing(0, message);
        return None;
    }
    add_hints_about_server(&mut files.main);
    let server_node = files.main.peek("server");
    let server = server::read(files.main.section("server", Server::TABLE), admin_token);
    let jwt = jwt::read(&entries(&files.get("jwt")));
    let origin_nodes = entries(&files.get("origins"));
    let zone_nodes = entries(&files.get("zones"));
    let (origin_names, zone_names) = (names(&origin_nodes), names(&zone_nodes));
    let (zones, classes) = zone::read(&zone_nodes);
    let known_zones = limit::Zones {
        names: &zone_names,
        zones: &zones,
    };
    // Whether the file names a state file. A wrong name counts, too: a state file is intended.
    let has_state = server_node.is_some_and(|node| node.field("state").is_some());
    let origins = origin::read(&origin_nodes, known_zones, has_state);
    // Plans of zones name classes of origins, which are known only now.
    for node in classes {
        check_class_exists(node, &origins);
    }
    let redis = redis::read(files.main.section("redis", Redis::TABLE));
    let mut route_nodes = Vec::new();
    let mut has_wrong_list = false;
    for list in files.get("routes") {
        match list.items_or("[[routes]] in double brackets, once for each route") {
            Some(tables) => route_nodes.extend(tables),
            None => has_wrong_list = true,
        }
    }
    let known = routes::RouteNames {
        origin_names: &origin_names,
        origins: &origins,
        zones: known_zones,
        listens: &server.listen,
    };
    let routes = routes::read(&route_nodes, &known);
    let log = Log::read_all(files.main.section("log", Log::TABLE));

    let has_route = !routes.is_empty() || has_wrong_list;
    report_missing(report, !origin_names.is_empty(), has_route);
    files.finish();
    let mut settings = Settings {
        jwt: jwt::with_verifiers(jwt, report.shared)?,
        server,
        origins: origins.into_iter().collect::<Option<_>>()?,
        zones: zones.into_iter().collect::<Option<_>>()?,
        redis,
        routes: routes.into_iter().collect::<Option<_>>()?,
        log,
        named: Vec::new(),
        warnings: Vec::new(),
        from_environment: UnexpandedValues::new(),
    };
    complete_routes(&mut settings);
    if !report.shared.has_problem.get() {
        let nodes = warnings::FileNodes {
            server: server_node,
            origins: origin_nodes,
            zones: zone_nodes,
            routes: route_nodes,
        };
        warnings::find(&settings, &nodes);
    }
    Some(settings)
}

/// Returns the names of tables such as `[zones.per_client]`.
fn names<'r>(nodes: &[Node<'r>]) -> Vec<&'r str> {
    nodes.iter().map(|node| node.name).collect()
}

/// Sets the values of routes that depend on several tables.
fn complete_routes(settings: &mut Settings) {
    let conditions = Arc::new(InputNames::of_conditions(&settings.routes));
    for route in &mut settings.routes {
        route.inputs = RequestInputs::of(route, &settings.zones, &settings.origins, &conditions);
        route.collapse_stamp = route.compute_collapse_stamp(&settings.origins);
        route.jwt = Arc::clone(&settings.jwt);
    }
}

/// Adds a message for each field of `[server]`, in case it stands at the top level.
fn add_hints_about_server(file: &mut Fields) {
    for name in Server::TABLE.names() {
        if !FILE.has(name) {
            file.add_hint(name, "this belongs to [server]; move it below that line");
        }
    }
}

/// Smallest table of an origin, for messages.
const ORIGIN_EXAMPLE: &str = "[origins.app] with servers = [\"http://127.0.0.1:9000\"]";
/// Smallest table of a route, for messages.
const ROUTE_EXAMPLE: &str = "[[routes]] with path = \"/\" and origin = \"app\"";

/// Reports a file without an origin or without a route.
fn report_missing(report: &Report, has_origin: bool, has_route: bool) {
    if !has_origin {
        report.add_missing(0, format!("there is no origin; add {ORIGIN_EXAMPLE}"));
    }
    if !has_route {
        report.add_missing(0, format!("there is no route; add {ROUTE_EXAMPLE}"));
    }
}

/// Returns the entries of tables of named items, such as `[origins]` of each file.
///
/// Reports a name that two files have.
fn entries<'r>(tables: &[Node<'r>]) -> Vec<Node<'r>> {
    let mut all = Vec::new();
    let mut by_name: HashMap<&str, Node> = HashMap::new();
    for table in tables {
        let Some(entries) = table.entries() else {
            table
                .report_expected::<()>(&format!("a table for each, such as [{}.name]", table.name));
            continue;
        };
        for entry in entries {
            if let Some(other) = by_name.insert(entry.name, entry) {
                entry.report_problem(&format!(
                    "[{}.{}] is also at {}; rename or remove one",
                    table.name,
                    entry.name,
                    other.location()
                ));
            }
            all.push(entry);
        }
    }
    all
}

/// Reports a problem if no origin has the class that a value of a plan names.
fn check_class_exists(node: Node, origins: &[Option<Origin>]) {
    let Some(name) = node.value.as_str() else {
        return;
    };
    let classes = || origins.iter().flatten().flat_map(|origin| &origin.classes);
    if classes().all(|class| *class.name != *name) {
        let mut known: Vec<&str> = classes().map(|class| &*class.name).collect();
        known.dedup();
        let hint = match known[..] {
            [] => "none has classes".to_owned(),
            _ => format!("there are {}", join_names(&known)),
        };
        node.report_missing(&format!("no origin has a class {name}; {hint}"));
    }
}
