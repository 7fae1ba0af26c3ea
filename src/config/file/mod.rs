//! Reads and checks `gateway.toml`.
//!
//! The tables are in `tables`, included files in `include`, variables in `environment`, and
//! warnings in `warnings`.

mod environment;
mod include;
mod reread;
mod warnings;

pub use reread::{FileField, admin_of_broken, at_fields};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use self::environment::UnexpandedValues;
use super::admin_tokens::has_admin_token;
use super::fields::Fields;
use super::node::Node;
use super::regular_file::bounded;
use super::report::{Report, Shared};
use super::settings::InputNames;
use super::table_settings::TableSettings;
use super::tables::file::{FILE, INCLUDED};
use super::tables::names::list;
use super::tables::{jwt, limit, origin, redis, routes, server, zone};
use super::{
    Jwt, LoadError, Log, Origin, Problem, Problems, Redis, RequestInputs, Server, Settings,
};

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

/// Maximum size of a file, in bytes. `/dev/zero` never ends.
const LARGEST: u64 = 100 << 20;

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
    let text = bounded(file, LARGEST).map_err(failed)?;
    String::from_utf8(text).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let message = "this is not UTF-8; save the file in that encoding".to_owned();
        Problems::new(path, Problem::locate(&text, vec![(valid, message)])).into()
    })
}

/// Checks the text of a file.
///
/// `path`: the file's path. Messages contain it, and relative file names in the text start at its
/// folder. `admin_token`: a token protects the admin port, so that it may be open to other hosts.
///
/// # Errors
///
/// Returns an error with all problems of the text, sorted by location.
pub fn parse(text: &str, path: &Path, admin_token: bool) -> Result<Settings, Problems> {
    let shared = Shared::default();
    parse_in(text, path, admin_token, &environment::of_process, &shared)
}

/// Checks a text as [`parse`] does, for a reload that replaces the settings `in_force`.
///
/// Problems show no keys of zones that mask their keys in `in_force`: the mistake may be just in
/// `mask_keys`.
pub fn parse_after(
    in_force: &Settings,
    text: &str,
    path: &Path,
    admin_token: bool,
) -> Result<Settings, Problems> {
    let masked = in_force.zones.iter().filter(|zone| zone.mask_keys);
    let mut shared = Shared::default();
    shared.masked = masked.map(|zone| zone.name.clone()).collect();
    parse_in(text, path, admin_token, &environment::of_process, &shared)
}

/// Checks a text as [`parse`] does, with this lookup of variables.
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
    let mut written = vec![environment::expand(file.get_mut(), &report, variable)];
    let mut root = Fields::root(FILE, &file, &report);

    let included = root.get("include").map(|node| include::read(node, path));
    let included = included.unwrap_or_default();
    let mut tables = Vec::new();
    let mut reports = Vec::new();
    for file in &included {
        let (mut table, mut report) = Report::parse(&file.text, &file.path, &file.folder, shared);
        report.is_included = true;
        written.push(environment::expand(table.get_mut(), &report, variable));
        tables.push(table);
        reports.push(report);
    }
    let others = tables.iter().zip(&reports);
    let others = others.map(|(table, report)| Fields::root(INCLUDED, table, report));
    let settings = settings(root, others.collect(), admin_token, &report, written);

    let reports = || std::iter::once(&report).chain(&reports);
    let problems: Vec<Problem> = reports().flat_map(|it| it.take(&it.problems)).collect();
    let warnings = reports().flat_map(|it| it.take(&it.warnings)).collect();
    let named = shared.named.take();
    match settings {
        Some(settings) if problems.is_empty() => Ok(Settings {
            named,
            warnings,
            ..settings
        }),
        _ => Err(Problems {
            named,
            ..Problems::new(path, problems)
        }),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Reads the settings from the file and the files that it includes.
///
/// `unexpanded`: values with variables before expansion, per file.
fn settings<'r>(
    mut file: Fields<'r>,
    mut included: Vec<Fields<'r>>,
    admin_token: bool,
    report: &Report,
    unexpanded: Vec<UnexpandedValues>,
) -> Option<Settings> {
    refuse_fields_of_server(&mut file);
    let server_node = file.value("server");
    let server = server::read(file.section("server", Server::TABLE), admin_token);
    let mut in_all = |file: &mut Fields<'r>, name| -> Vec<Option<Node<'r>>> {
        let first = file.get(name);
        let included = included.iter_mut().map(|fields| fields.get(name));
        std::iter::once(first).chain(included).collect()
    };
    // Read first, because keys use these names.
    let jwt_nodes = entries(&in_all(&mut file, "jwt"));
    let jwt = jwt::read(&jwt_nodes);
    let claims = jwt_nodes
        .iter()
        .map(|node| (node.name.to_owned(), BTreeSet::new()));
    report.shared.claims.borrow_mut().extend(claims);
    let origin_nodes = entries(&in_all(&mut file, "origins"));
    let zone_nodes = entries(&in_all(&mut file, "zones"));
    let names = |nodes: &[Node<'r>]| -> Vec<&str> { nodes.iter().map(|node| node.name).collect() };
    let (origin_names, zone_names) = (names(&origin_nodes), names(&zone_nodes));
    let (zones, classes) = zone::read(&zone_nodes);
    let known_zones = limit::Zones {
        names: &zone_names,
        zones: &zones,
    };
    // A wrong value counts, too: a state file is intended.
    let has_state = server_node.is_some_and(|node| node.field("state").is_some());
    let origins = origin::read(&origin_nodes, known_zones, has_state);
    for node in classes {
        check_class_exists(node, &origins);
    }
    let redis = redis::read(file.section("redis", Redis::TABLE));
    let mut are_lists_of_routes = true;
    let mut route_nodes = Vec::new();
    let mut route_counts = Vec::new();
    for list in in_all(&mut file, "routes") {
        let what = "[[routes]] in double brackets, once for each route";
        let tables = list.map_or(Some(Vec::new()), |list| list.items_or(what));
        are_lists_of_routes &= tables.is_some();
        let tables = tables.unwrap_or_default();
        route_counts.push(tables.len());
        route_nodes.extend(tables);
    }
    let known = routes::RouteNames {
        origin_names: &origin_names,
        origins: &origins,
        zones: known_zones,
        listens: &server.listen,
    };
    let routes = routes::read(&route_nodes, &known);
    let log = Log::of(file.section("log", Log::TABLE));

    let has_route = !routes.is_empty() || !are_lists_of_routes;
    report_missing(report, file.is_empty(), !origin_names.is_empty(), has_route)?;
    file.finish();
    for fields in included {
        fields.finish();
    }
    let mut jwt: Vec<Jwt> = jwt.into_iter().collect::<Option<_>>()?;
    let mut claims = report.shared.claims.take();
    for jwt in &mut jwt {
        let claims = claims.remove(&jwt.name).unwrap_or_default();
        jwt.verifier = Arc::new(jwt.verifier.reading(claims.into_iter().collect()));
    }
    let jwt: Arc<[Jwt]> = jwt.into();
    let mut settings = Settings {
        jwt: Arc::clone(&jwt),
        server,
        origins: origins.into_iter().collect::<Option<_>>()?,
        zones: zones.into_iter().collect::<Option<_>>()?,
        redis,
        routes: routes.into_iter().collect::<Option<_>>()?,
        log,
        named: Vec::new(),
        warnings: Vec::new(),
        from_environment: environment::merged(unexpanded, &route_counts),
    };
    let conditions = Arc::new(InputNames::of_conditions(&settings.routes));
    for route in &mut settings.routes {
        route.inputs = RequestInputs::of(route, &settings.zones, &settings.origins, &conditions);
        route.collapse_stamp = route.stamp(&settings.origins);
        route.jwt = Arc::clone(&jwt);
    }
    let nodes = warnings::FileNodes {
        server: server_node,
        origins: origin_nodes,
        zones: zone_nodes,
        routes: route_nodes,
    };
    if !report.shared.has_problem.get() {
        warnings::find(&settings, &nodes);
    }
    Some(settings)
}

fn refuse_fields_of_server(file: &mut Fields) {
    for name in Server::TABLE.names() {
        if !FILE.has(name) {
            file.lacks(name, "this belongs to [server]; move it below that line");
        }
    }
}

/// Reports missing tables. Returns `None` if there is nothing else to report.
fn report_missing(
    report: &Report,
    is_empty: bool,
    has_origin: bool,
    has_route: bool,
) -> Option<()> {
    const ORIGIN: &str = "[origins.app] with servers = [\"http://127.0.0.1:9000\"]";
    const ROUTE: &str = "[[routes]] with path = \"/\" and origin = \"app\"";

    if is_empty {
        report.missing(
            0,
            format!("the file is empty; add at least {ORIGIN}, and {ROUTE}"),
        );
        return None;
    }
    if !has_origin {
        report.missing(0, format!("there is no origin; add {ORIGIN}"));
    }
    if !has_route {
        report.missing(0, format!("there is no route; add {ROUTE}"));
    }
    Some(())
}

/// Returns the entries of tables of named items, such as `[origins]` of each file.
///
/// Reports a name that two files have.
fn entries<'r>(tables: &[Option<Node<'r>>]) -> Vec<Node<'r>> {
    let mut all = Vec::new();
    let mut nodes: HashMap<&str, Node> = HashMap::new();
    for table in tables.iter().flatten() {
        let Some(entries) = table.entries() else {
            table.expected::<()>(&format!("a table for each, such as [{}.name]", table.name));
            continue;
        };
        for entry in entries {
            if let Some(other) = nodes.insert(entry.name, entry) {
                entry.wrong(&format!(
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

/// Reports a problem if no origin has the class that this value names.
fn check_class_exists(node: Node, origins: &[Option<Origin>]) {
    let Some(name) = node.value.as_str() else {
        return;
    };
    let classes = || origins.iter().flatten().flat_map(|origin| &origin.classes);
    if classes().all(|class| *class.name != *name) {
        let mut known: Vec<&str> = classes().map(|class| &*class.name).collect();
        known.dedup();
        let known = match known[..] {
            [] => "none has classes".to_owned(),
            _ => format!("there are {}", list(&known)),
        };
        node.missing(&format!("no origin has a class {name}; {known}"));
    }
}
