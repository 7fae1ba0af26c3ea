use std::borrow::Cow;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use super::limits::{self, Zones};
use super::{Fields, Node, cost, header_fields, index, rewrite, values};
use crate::config::suggest::nearest;
use crate::config::tables::kinds::DURATION_OR_NONE;
use crate::config::{
    CostRule, FieldEdits, Origin, PathPattern, PathRegex, RatelimitHeaders, RequestInputs, Route,
    RouteAction, Statuses, schema,
};

/// What routes can name.
pub(super) struct Known<'a> {
    pub(super) origin_names: &'a [&'a str],
    /// The origins without problems.
    pub(super) origins: &'a [Option<Origin>],
    pub(super) zones: Zones<'a>,
}

/// The tables of `[[routes]]`, if there are any; `None` if the value has none, which is reported.
pub(super) fn tables(node: Option<Node<'_>>) -> Option<Vec<Node<'_>>> {
    let Some(node) = node else {
        return Some(Vec::new());
    };
    let what = "[[routes]] in double brackets, once for each route";
    node.items().or_else(|| node.expected(what))
}

/// Reads the `[[routes]]`; `None` stands for a route with a problem.
#[expect(
    clippy::mutable_key_type,
    reason = "a pattern is compared and hashed by its text"
)]
pub(super) fn read(tables: &[Node], known: &Known) -> Vec<Option<Route>> {
    let numbers = numbers(tables);
    let mut earlier: HashMap<Taken, usize> = HashMap::new();
    let mut routes = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let mut fields = Fields::of(*table, "this route".to_owned(), schema::ROUTE);
        let taken = fields.as_mut().and_then(taken);
        let twin = taken.as_ref().and_then(|taken| earlier.get(taken).copied());
        if let Some(twin) = twin {
            let other = if tables[twin].is_beside(table) {
                format!("route {}", numbers[twin])
            } else {
                format!("the route at {}", tables[twin].place())
            };
            table.wrong(&format!(
                "route {} has the same path, host and methods as {other}, so it would never be used; remove one",
                numbers[index],
            ));
        } else if let Some(taken) = &taken {
            earlier.insert(taken.clone(), index);
        }
        routes.push(fields.and_then(|fields| route(fields, taken, known)));
    }
    routes
}

/// The number of each route in its own file, from 1. Those of a file follow each other.
fn numbers(tables: &[Node]) -> Vec<usize> {
    let mut numbers = Vec::with_capacity(tables.len());
    let mut before: Option<(&Node, usize)> = None;
    for table in tables {
        let number = match before {
            Some((other, number)) if other.is_beside(table) => number + 1,
            _ => 1,
        };
        numbers.push(number);
        before = Some((table, number));
    }
    numbers
}

/// The requests that a route takes. No two routes may take the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Taken {
    path: PathPattern,
    host: Option<String>,
    /// In alphabetical order.
    methods: Vec<String>,
}

fn taken(fields: &mut Fields) -> Option<Taken> {
    let path = fields.required("path", "\"/\"", |node| {
        values::parsed(node, "a path such as \"/\" or \"= /exact\"", path)
    });
    let host = fields.optional("host", None, |node| {
        values::parsed(node, "a host such as \"api.example.com\"", host).map(Some)
    });
    let method = |node: Node| values::parsed(node, "a method such as \"POST\"", method);
    let methods = values::list("[\"POST\"]", method);
    let mut methods = fields.optional("methods", Vec::new(), methods)?;
    methods.sort();
    Some(Taken {
        path: path?,
        host: host?,
        methods,
    })
}

fn route(mut fields: Fields, taken: Option<Taken>, known: &Known) -> Option<Route> {
    let action = action(&mut fields, known);
    let origin = match action {
        Some(RouteAction::Forward(origin)) => Some(origin),
        Some(RouteAction::Refuse(_)) | None => None,
    };
    let settings = origin.and_then(|origin| known.origins.get(origin)?.as_ref());
    let class = fields.get("class");
    let name = class.map(|node| values::class(node).map(|name| (node, name)));
    let class = settings.and_then(|origin| class_of(name, origin));
    let limits = fields.optional("limits", Vec::new(), |node| {
        limits::read(node, &known.zones)
    });
    let cost_node = fields.get("cost");
    let cost = cost_node.map_or(Some(CostRule::default()), cost::read);
    if let (Some(node), Some(cost), Some(limits)) = (cost_node, &cost, &limits) {
        cost::check(node, cost, limits, known.zones.zones);
    }
    let refund = values::list("[\"2xx\"]", statuses);
    let refund = fields.or("refund", Vec::new(), refund);
    let max_wait = fields.get("max_wait");
    let max_wait = max_wait.and_then(DURATION_OR_NONE.read).flatten();
    let dry_run = fields.or("dry_run", false, values::boolean);
    let reject_status = fields.or("reject_status", 429, values::whole(400..=599));
    let reject_body = fields.or("reject_body", "Too many requests\n".to_owned(), |node| {
        values::text(node).map(str::to_owned)
    });
    let names = RatelimitHeaders::NAMES.map(|name| (name, name));
    let dialects = values::list("[\"x-ratelimit\"]", values::choice(&names));
    let headers = fields.or("headers", vec![RatelimitHeaders::NAMES[0]], dialects);
    let rewrite = rewrite::read(&mut fields, taken.as_ref().map(|taken| &taken.path));
    let mut edits = |name, of| {
        fields.optional(name, FieldEdits::default(), |node| {
            header_fields::read(node, of)
        })
    };
    let request_fields = edits("request_headers", header_fields::Of::Requests);
    let response_fields = edits("response_headers", header_fields::Of::Responses);
    let answer_fields = edits("answer_headers", header_fields::Of::Responses);
    fields.finish();
    let Taken {
        path,
        host,
        methods,
    } = taken?;
    let (mut limits, cost) = (limits?, cost?);
    for limit in &mut limits {
        limit.limit.max_wait = max_wait;
        limit.limit.cost = cost.usual();
    }
    Some(Route {
        path,
        host,
        methods,
        action: action?,
        rewrite: rewrite?,
        request_fields: request_fields?,
        response_fields: response_fields?,
        answer_fields: answer_fields?,
        class: class.unwrap_or_default(),
        inputs: RequestInputs::default(),
        cost,
        refund,
        limits,
        max_wait,
        dry_run,
        reject_status,
        reject_body,
        headers: RatelimitHeaders {
            x_ratelimit: headers.contains(&RatelimitHeaders::NAMES[0]),
            ratelimit: headers.contains(&RatelimitHeaders::NAMES[1]),
            server_timing: headers.contains(&RatelimitHeaders::NAMES[2]),
        },
    })
}

/// Reads where the requests go. Reports each field that a refused request has no use for.
fn action(fields: &mut Fields, known: &Known) -> Option<RouteAction> {
    let Some(refuse) = fields.get("refuse") else {
        let origin = fields.required("origin", "\"app\"", |node| {
            index(node, "origins", known.origin_names)
        });
        return origin.map(RouteAction::Forward);
    };
    // It is asked for, though no value of it fits.
    fields.get("origin");
    for node in schema::NOT_REFUSED
        .iter()
        .filter_map(|name| fields.value(name))
    {
        node.tell(
            "a route with refuse answers all its requests itself; remove this field or refuse",
        );
    }
    values::whole(400..=599)(refuse).map(RouteAction::Refuse)
}

fn statuses(node: Node) -> Option<Statuses> {
    values::parsed(node, "a status such as \"404\" or \"2xx\"", str::parse)
}

/// The class that a route names, or the first one of its origin.
///
/// The inner `None`: the name is wrong, which is reported.
#[expect(clippy::option_option, reason = "a wrong name is not an absent one")]
fn class_of(class: Option<Option<(Node, &str)>>, origin: &Origin) -> Option<Arc<str>> {
    let first = origin.classes.first().map(|it| &it.name);
    let Some(class) = class else {
        return first.map(Arc::clone);
    };
    let (node, name) = class?;
    let mut names = origin.classes.iter().map(|it| &it.name);
    if let Some(known) = names.find(|known| ***known == *name) {
        return Some(Arc::clone(known));
    }
    let names: Vec<&str> = origin.classes.iter().map(|it| &*it.name).collect();
    let table = format!("[origins.{}.classes]", origin.name);
    node.missing(&match nearest(name, &names) {
        _ if names.is_empty() => format!("the origin has no classes; add {table} with {name} = 1"),
        Some(near) => format!("{table} has no {name}; did you mean \"{near}\"?"),
        None => format!("{table} has no {name}; it has {}", names.join(", ")),
    });
    None
}

fn path(text: &str) -> Result<PathPattern, Cow<'static, str>> {
    if let Some(regex) = text.strip_prefix("regex:") {
        if regex.is_empty() {
            return Err("a regular expression is missing behind regex:".into());
        }
        if regex.starts_with(char::is_whitespace) {
            return Err("a regular expression begins right behind regex:; remove the blank, or write [ ] for one".into());
        }
        let regex = PathRegex::new(regex).map_err(|error| error.to_string())?;
        return Ok(PathPattern::Regex(regex));
    }
    let (path, pattern): (_, fn(String) -> _) = match text.strip_prefix('=') {
        Some(exact) => (exact.trim_start(), PathPattern::Exact),
        None => (text, PathPattern::Prefix),
    };
    if !path.starts_with('/') {
        return Err("a path begins with /, or with = / to match only itself".into());
    }
    if path.contains(['?', '#']) {
        return Err("a path has no query or fragment; remove everything from ? or # on".into());
    }
    Ok(pattern(path.to_owned()))
}

fn host(text: &str) -> Result<String, &'static str> {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let name = !text.is_empty() && text.chars().all(letter);
    let address = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if name || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        Ok(text.to_ascii_lowercase())
    } else if text.contains('*') {
        Err("a host is one name; write a route for each, or leave host out to match all")
    } else {
        Err("a host is a name such as \"api.example.com\", without scheme, port or path")
    }
}

fn method(text: &str) -> Result<String, String> {
    if !values::is_token(text) {
        return Err("a method is a word such as \"POST\"".to_owned());
    }
    let capitals = text.to_ascii_uppercase();
    if capitals != text {
        return Err(format!("methods are written in capitals, \"{capitals}\""));
    }
    Ok(capitals)
}
