//! Translates `location` blocks to routes.
//!
//! A location forwards its requests (`proxy_pass`), or nginx answers them itself. If nginx protects
//! a location in a way that drip does not have, drip refuses its requests: it answers with an error
//! status. A scope is the blocks around a directive, from which it inherits other directives.

use super::directives;
use super::fields::Fields;
use super::limits::{Connections, LimitSet, Limits};
use super::location_kind::LocationKind;
use super::networks::Networks;
use super::origins::{note, pass};
use super::protection::Protection;
use super::route::{Action, Forward, Location, Pattern};
use super::scope::{EnclosingServer, Scope, named};
use super::{Translation, expression, probe};
use crate::import::tree::Directive;
use crate::import::values;

/// The location that is being translated.
struct LocationBlock<'t, 's> {
    directive: &'t Directive<'t>,
    scope: &'s Scope<'t>,
    server: EnclosingServer<'s>,
    protection: Option<Protection<'s>>,
    /// Number of notes that existed before this location was read.
    notes_before: usize,
}

impl<'t> LocationBlock<'t, '_> {
    /// Returns the directives in the location.
    fn inside(&self) -> &'t [Directive<'t>] {
        self.directive.inside()
    }

    /// Formats the location as nginx writes it, for notes.
    fn shown(&self) -> String {
        format!("location {}", self.directive.args.join(" "))
    }

    /// Formats the location, with its host if several servers may have the same location.
    fn with_host(&self) -> String {
        let shown = self.directive.args.join(" ");
        match self.server.host.filter(|_| self.server.has_others) {
            Some(host) if shown.starts_with('/') => format!("{host}{shown}"),
            Some(host) => format!("{host} {shown}"),
            None => shown,
        }
    }

    /// Returns the clients that are allowed; `None` if drip refuses all requests.
    fn networks(&self) -> Option<Networks> {
        match &self.protection {
            Some(protection) => protection.networks.clone(),
            None => Some(Networks::default()),
        }
    }

    /// Returns a route with the notes on the location as its comments.
    fn route(&self, pattern: Pattern, action: Action) -> Location<'t> {
        Location {
            comments: self.directive.at.notes.since(self.notes_before),
            ..Location::new(pattern, action, self.directive.at)
        }
    }

    /// Returns the action of a location that does not forward; `None` if it is left out.
    fn unforwarded_action(&self, path: Option<&str>) -> Option<Action> {
        if path == Some("/") && redirects(self.inside()) {
            self.note(" has no proxy_pass and is left out; its requests go to the longest path that matches");
            return None;
        }
        self.note(
            " has no proxy_pass: nginx answers it itself, and drip refuses its requests with 404",
        );
        Some(Action::Absent)
    }

    /// Returns the action that refuses all requests. Notes what protects the location.
    fn refuse(&self, protection: &Protection) -> Action {
        protection.note_refusal(&self.shown());
        Action::Refuse(protection.status)
    }

    fn note_duplicate(&self) {
        self.note(" is defined already; this one is left out");
    }

    fn note_invalid_path(&self) {
        self.note(" is not a path that a route can have; it is left out");
    }

    /// Adds a note that begins with the location. `what`: the rest of the sentence.
    fn note(&self, what: &str) {
        self.directive.at.note(format!("{}{what}", self.shown()));
    }
}

impl Translation<'_> {
    /// Adds the locations of a block, including nested ones, to `routes`.
    pub(super) fn add_locations<'t>(
        &mut self,
        block: &'t [Directive<'t>],
        scope: &Scope<'t>,
        server: EnclosingServer,
        routes: &mut Vec<Location<'t>>,
    ) {
        for directive in named(block, "location") {
            let inside = directive.inside();
            let scope = scope.inside(inside);
            let notes_before = directive.at.notes.count();
            directives::note_unknown(inside);
            let why = self.why_addresses_differ;
            let protection = Protection::of_location(inside, &server, &scope, why);
            let location = LocationBlock {
                directive,
                scope: &scope,
                server,
                protection,
                notes_before,
            };
            match LocationKind::parse(&directive.args) {
                LocationKind::Path(pattern) => {
                    self.add_path(&location, &pattern, block, routes);
                    let server = EnclosingServer {
                        outer_path: pattern.literal_path().map(utf8_part),
                        ..server
                    };
                    self.add_locations(inside, &scope, server, routes);
                }
                LocationKind::Regex {
                    pattern,
                    ignores_case,
                } => self.add_regex(&location, pattern, ignores_case, routes),
                // A named location is noted where it is used.
                LocationKind::Named => {}
                LocationKind::Invalid => location.note_invalid_path(),
            }
        }
    }

    /// Adds a location that has a path. `siblings`: the directives of the block around it.
    fn add_path<'t>(
        &mut self,
        location: &LocationBlock<'t, '_>,
        pattern: &Pattern,
        siblings: &[Directive],
        routes: &mut Vec<Location<'t>>,
    ) {
        let path = pattern.literal_path().unwrap_or_default();
        if utf8_part(path) != path || !probe::path(path) {
            return refuse_paths_from(location, utf8_part(path), routes);
        }
        // Prefixes are the same with and without `^~`.
        let is_prefix = |pattern: &Pattern| matches!(pattern, Pattern::Prefix { .. });
        let is_same = |known: &Pattern| {
            is_prefix(known) == is_prefix(pattern) && known.literal_path() == Some(path)
        };
        if routes.iter().any(|known| is_same(&known.pattern)) {
            return location.note_duplicate();
        }
        let forwarded = self.forward(location, Some(path));
        let refused = || Some(location.refuse(location.protection.as_ref()?));
        let Some(action) = forwarded.or_else(refused) else {
            return;
        };
        // nginx redirects `bare` to this location. In drip a location with a shorter path would
        // take it, so it is refused if this location is protected.
        if let Some(bare) = redirected_path(siblings, path)
            && pass(location.inside()).is_some()
        {
            let status = match &action {
                Action::Refuse(status) => Some(*status),
                Action::Forward(forward) if !forward.networks.is_empty() => Some(403),
                Action::Forward(_) | Action::Absent => None,
            };
            if let Some(status) = status {
                let (pattern, action) = (Pattern::Exact(bare.to_owned()), Action::Refuse(status));
                routes.push(Location::new(pattern, action, location.directive.at));
            } else if is_prefix(pattern) {
                location.directive.at.note(format!("nginx answers {bare} with a redirect to {path}; drip makes none, and {bare} goes to the longest path that matches"));
            }
        }
        routes.push(location.route(pattern.clone(), action));
    }

    /// Adds a location that has a regular expression.
    fn add_regex<'t>(
        &mut self,
        location: &LocationBlock<'t, '_>,
        pattern: &str,
        ignores_case: bool,
        routes: &mut Vec<Location<'t>>,
    ) {
        let outer_path = location.server.outer_path;
        let has_nested = named(location.inside(), "location").next().is_some();
        // A nested location may be protected, and drip cannot separate its paths.
        let by_nested = || has_nested.then(|| Protection::by_nested(location.directive));
        let protection = location.protection.clone().or_else(by_nested);
        let exact = expression::translate(pattern, ignores_case).filter(|_| outer_path.is_none());
        if !has_nested
            && let Some(text) = &exact
            && let Some(action) = self.forward(location, None)
        {
            return add_regex_route(location, text.clone(), action, routes);
        }
        let why = if outer_path.is_some() {
            ": drip has no regular expression for a part of a location"
        } else {
            ": drip has no equivalent regular expression"
        };
        let Some(protection) = protection else {
            if exact.is_none() {
                let what = format!("{why}; its requests go to the next route that matches");
                location.note(&what);
            }
            return;
        };
        let action = location.refuse(&protection);
        let text = exact.unwrap_or_else(|| {
            // Refusing too many paths is safer than refusing too few.
            let wider = match outer_path {
                Some(path) => expression::prefix(path),
                None => expression::wider(pattern, ignores_case)
                    .unwrap_or_else(|| expression::prefix("/")),
            };
            let what = format!("{why}; it refuses all paths that match {wider}");
            location.note(&what);
            wider
        });
        add_regex_route(location, text, action, routes);
    }

    /// Returns the action of a location; `None` if drip refuses its requests or leaves it out.
    ///
    /// `path`: the part that a URI of `proxy_pass` replaces.
    fn forward(&mut self, location: &LocationBlock, path: Option<&str>) -> Option<Action> {
        let networks = location.networks()?;
        let scope = location.scope;
        if let Some(pass) = pass(location.inside()) {
            return self.forward_by(pass, location, path, scope, networks, scope);
        }
        let Some((files, target)) = fallback(location) else {
            return location.unforwarded_action(path);
        };
        let (name, inside) = (target.arg(0), target.inside());
        let Some(pass) = pass(inside) else {
            return location.unforwarded_action(path);
        };
        let what = format!("try_files: drip serves no files; all requests go to {name}");
        files.at.note(what);
        let target_scope = location.server.scope.inside(inside);
        // nginx applies the limits of the first location, or of the named location if it has none.
        let limits_scope = scope.with_outermost(inside);
        let why = self.why_addresses_differ;
        let protection = Protection::of_location(inside, &location.server, &target_scope, why);
        let allowed = match &protection {
            None => networks,
            Some(protection) => {
                // In nginx a client must be allowed by both lists of networks. drip has one list.
                let fits = |target: &&Networks| networks.is_empty() || networks == **target;
                let Some(both) = protection.networks.as_ref().filter(fits) else {
                    protection.note_refusal(&format!("location {name}"));
                    return Some(Action::Refuse(protection.status));
                };
                both.clone()
            }
        };
        self.forward_by(pass, location, path, &target_scope, allowed, &limits_scope)
    }

    /// Returns the action of requests that `pass` forwards, with the settings of `scope`.
    ///
    /// `limits_scope`: the blocks whose limits apply.
    fn forward_by(
        &mut self,
        pass: &Directive,
        location: &LocationBlock,
        path: Option<&str>,
        scope: &Scope,
        networks: Networks,
        limits_scope: &Scope,
    ) -> Option<Action> {
        let (zones, notes) = (&self.zones, pass.at.notes);
        let lost_before = notes.lost_limits();
        let connections = Connections::read(limits_scope, zones);
        let server = &location.server;
        let target = self.origins.find(pass, server, scope, path, &connections);
        let target = target.map_err(|why| note(pass, &why)).ok()?;
        self.body_sizes.push(body_size(limits_scope));
        let requests = LimitSet::requests(limits_scope, zones);
        let limits_origin = connections.max_in_flight.is_some();
        let limits = Limits::merge(requests, connections.of_keys, location.directive.at);
        if notes.lost_limits() > lost_before && limits.list.is_empty() && !limits_origin {
            notes.add_unlimited(location.with_host());
        }
        let (strip_prefix, add_prefix) = path.map(str::to_owned).zip(target.prefix).unzip();
        Some(Action::Forward(Box::new(Forward {
            origin: target.origin,
            response_timeout: target.response_timeout,
            limits,
            strip_prefix,
            add_prefix,
            request_headers: Fields::of_requests(scope),
            response_headers: Fields::of_responses(scope),
            networks,
        })))
    }
}

/// Refuses all paths that begin with `start`, if the location is protected.
///
/// For a location with a path that no route can have. Any other such location is left out.
fn refuse_paths_from<'t>(
    location: &LocationBlock<'t, '_>,
    start: &str,
    routes: &mut Vec<Location<'t>>,
) {
    let Some(protection) = &location.protection else {
        return location.note_invalid_path();
    };
    let action = location.refuse(protection);
    location.note(&format!(
        " cannot be written exactly; drip refuses all paths that begin with {start}"
    ));
    let pattern = Pattern::Regex(expression::prefix(start));
    routes.insert(0, location.route(pattern, action));
}

/// Adds the route of a regular expression. nginx uses the first of two equal ones.
fn add_regex_route<'t>(
    location: &LocationBlock<'t, '_>,
    text: String,
    action: Action,
    routes: &mut Vec<Location<'t>>,
) {
    let pattern = Pattern::Regex(text);
    if routes.iter().any(|known| known.pattern == pattern) {
        return location.note_duplicate();
    }
    routes.push(location.route(pattern, action));
}

/// Returns the `try_files` of a location, and the named location to which it falls back.
fn fallback<'s>(
    location: &LocationBlock<'s, 's>,
) -> Option<(&'s Directive<'s>, &'s Directive<'s>)> {
    let files = location.scope.get("try_files")?;
    let name = files.args.last().filter(|last| last.starts_with('@'))?;
    let mut locations = named(location.server.block, "location");
    let target = locations.find(|target| target.args.first() == Some(name))?;
    Some((files, target))
}

/// Returns the path that nginx answers with a redirect to a location that forwards.
///
/// nginx redirects `/api` to a `location /api/`, unless there is also a location for `/api`.
fn redirected_path<'p>(siblings: &[Directive], path: &'p str) -> Option<&'p str> {
    let bare = path.strip_suffix('/').filter(|bare| !bare.is_empty())?;
    let has_bare_path = |location: &Directive| match LocationKind::parse(&location.args) {
        LocationKind::Path(pattern) => pattern.literal_path() == Some(bare),
        _ => false,
    };
    (!named(siblings, "location").any(has_bare_path)).then_some(bare)
}

/// Returns whether a block answers with a redirect.
pub(super) fn redirects(block: &[Directive]) -> bool {
    named(block, "return").next().is_some_and(|directive| {
        // A URL without a status is a redirect, too.
        let status_or_url = directive.arg(0);
        status_or_url.starts_with('3') || status_or_url.contains("://")
    })
}

/// Returns the beginning of a path, up to the first character that was not UTF-8.
fn utf8_part(text: &str) -> &str {
    text.split('\u{fffd}').next().unwrap_or_default()
}

/// Returns the value of `client_max_body_size` in bytes. 0 means no limit.
fn body_size(scope: &Scope) -> Option<u64> {
    let directive = scope.get("client_max_body_size")?;
    let text = directive.arg(0);
    let size = values::size(text);
    if size.is_none() {
        let message =
            format!("client_max_body_size: \"{text}\" is not a size; the default is used");
        directive.at.note(message);
    }
    size
}
