//! Translates `location` blocks.

use super::directives;
use super::fields::Fields;
use super::limits::{Connections, LimitSet, Limits};
use super::location_kind::{Kind, Mark, kind};
use super::networks::Networks;
use super::origins::{Spot, note, pass};
use super::protection::Protection;
use super::route::{Action, Forward, Location, Pattern};
use super::scope::{EnclosingServer, Scope, named};
use super::{Translation, expression, probe};
use crate::import::notes::Notes;
use crate::import::tree::Directive;
use crate::import::values;

/// The location that is being translated.
struct LocationBlock<'t> {
    directive: &'t Directive,
    scope: &'t Scope<'t>,
    around: EnclosingServer<'t>,
    protection: Option<Protection>,
    /// Clients that are allowed, if drip can check all that protects the location.
    networks: Option<Networks>,
    /// Number of notes that existed before this location was read.
    before: usize,
}

impl LocationBlock<'_> {
    fn inside(&self) -> &[Directive] {
        self.directive.inside()
    }

    fn shown(&self) -> String {
        format!("location {}", self.directive.args.join(" "))
    }

    /// Formats the location, with its host if several servers may have the same location.
    fn with_host(&self) -> String {
        let shown = self.directive.args.join(" ");
        match self.around.name.filter(|_| self.around.has_others) {
            Some(host) if shown.starts_with('/') => format!("{host}{shown}"),
            Some(host) => format!("{host} {shown}"),
            None => shown,
        }
    }

    fn route(&self, pattern: Pattern, action: Action, notes: &Notes) -> Location {
        Location {
            pattern,
            action,
            comments: notes.since(self.before),
            at: self.directive.at,
        }
    }

    fn note(&self, what: &str, notes: &mut Notes) {
        notes.add(self.directive.at, format!("{}{what}", self.shown()));
    }
}

impl Translation<'_> {
    /// Adds the locations of a block, including nested ones.
    pub(super) fn locations(
        &mut self,
        block: &[Directive],
        scope: &Scope,
        around: EnclosingServer,
        found: &mut Vec<Location>,
    ) {
        for directive in named(block, "location") {
            let inside = directive.inside();
            let scope = scope.inside(inside);
            let before = self.notes.count();
            directives::unknown(inside, &mut self.notes);
            let mut protection = Protection::of_location(inside, &around, &scope);
            let networks = protection
                .as_mut()
                .and_then(|it| it.networks(&scope, &self.clients));
            let one = LocationBlock {
                directive,
                scope: &scope,
                around,
                protection,
                networks,
                before,
            };
            match kind(&directive.args) {
                Kind::Path { mark, path } => {
                    self.path(&one, mark, path, block, found);
                    let around = EnclosingServer {
                        within: Some(readable(path)),
                        ..around
                    };
                    self.locations(inside, &scope, around, found);
                }
                Kind::Regex {
                    pattern,
                    ignores_case,
                } => self.regex(&one, pattern, ignores_case, found),
                // A named location is noted where it is used.
                Kind::Named => {}
                Kind::Bad => self.not_a_path(&one),
            }
        }
    }

    /// Adds a location that has a path.
    fn path(
        &mut self,
        one: &LocationBlock,
        mark: Mark,
        path: &str,
        beside: &[Directive],
        found: &mut Vec<Location>,
    ) {
        if readable(path) != path || !probe::path(path) {
            return self.no_path(one, readable(path), found);
        }
        let (path_of_route, stops) = (path.to_owned(), mark == Mark::Stops);
        let pattern = if mark == Mark::Exact {
            Pattern::Exact(path_of_route)
        } else {
            Pattern::Prefix {
                path: path_of_route,
                stops,
            }
        };
        let is_same = |known: &Pattern| match (known, &pattern) {
            (Pattern::Prefix { path: known, .. }, Pattern::Prefix { path, .. }) => known == path,
            (known, pattern) => known == pattern,
        };
        if found.iter().any(|known| is_same(&known.pattern)) {
            return self.defined_already(one);
        }
        let (is_checked, bare) = (one.networks.is_some(), redirected(beside, path));
        let action = match &one.protection {
            Some(protection) if !is_checked => self.refused(one, protection),
            protection => match (self.forwarded(one, Some(path)), protection) {
                (Some(action), _) => action,
                (None, Some(protection)) => self.refused(one, protection),
                (None, None) => return,
            },
        };
        // nginx answers this path with a redirect to the location.
        if let Some(bare) = bare.filter(|_| pass(one.inside()).is_some()) {
            let status = match &action {
                Action::Refuse(status) => Some(*status),
                Action::Forward(forward) if !forward.networks.is_empty() => Some(403),
                Action::Forward(_) | Action::Absent => None,
            };
            if let Some(status) = status {
                found.push(Location {
                    pattern: Pattern::Exact(bare.to_owned()),
                    action: Action::Refuse(status),
                    comments: Vec::new(),
                    at: one.directive.at,
                });
            } else if mark != Mark::Exact {
                self.notes.add(one.directive.at, format!("nginx answers {bare} with a redirect to {path}; drip makes none, and {bare} goes to the longest path that matches"));
            }
        }
        found.push(one.route(pattern, action, &self.notes));
    }

    /// Refuses the paths that begin with `start`.
    ///
    /// This protects a location whose path no route can express.
    fn no_path(&mut self, one: &LocationBlock, start: &str, found: &mut Vec<Location>) {
        let Some(protection) = &one.protection else {
            return self.not_a_path(one);
        };
        let action = self.refused(one, protection);
        let instead = format!("drip refuses all paths that begin with {start}");
        let what = format!(" cannot be written exactly; {instead}");
        one.note(&what, &mut self.notes);
        let pattern = Pattern::Regex(expression::prefix(start));
        found.insert(0, one.route(pattern, action, &self.notes));
    }

    /// Adds a location that has a regular expression.
    fn regex(
        &mut self,
        one: &LocationBlock,
        pattern: &str,
        ignores_case: bool,
        found: &mut Vec<Location>,
    ) {
        let within = one.around.within;
        let has_nested = named(one.inside(), "location").next().is_some();
        let mut protection = one.protection.clone();
        if protection.is_none() && has_nested {
            protection = Some(Protection::by_nested(one.directive));
        }
        let exact = expression::translate(pattern, ignores_case).filter(|_| within.is_none());
        let is_open = protection.is_none() || (one.networks.is_some() && !has_nested);
        if let Some(text) = exact.clone().filter(|_| is_open)
            && let Some(action) = self.forwarded(one, None)
        {
            return self.add_regex(one, text, action, found);
        }
        let why = if within.is_some() {
            ": drip has no regular expression for a part of a location"
        } else {
            ": drip has no such regular expression"
        };
        let Some(protection) = protection else {
            if exact.is_none() {
                let what = format!("{why}; its requests go to the route that matches otherwise");
                one.note(&what, &mut self.notes);
            }
            return;
        };
        let action = self.refused(one, &protection);
        let text = exact.unwrap_or_else(|| {
            // Refusing too many paths is safer than refusing too few.
            let wider = expression::wider(pattern, ignores_case).filter(|_| within.is_none());
            let wider = wider.unwrap_or_else(|| expression::prefix(within.unwrap_or("/")));
            let what = format!("{why}; it refuses the paths of {wider}, which are more");
            one.note(&what, &mut self.notes);
            wider
        });
        self.add_regex(one, text, action, found);
    }

    /// Adds the route of a regular expression. nginx uses the first of two equal ones.
    fn add_regex(
        &mut self,
        one: &LocationBlock,
        text: String,
        action: Action,
        found: &mut Vec<Location>,
    ) {
        let pattern = Pattern::Regex(text);
        if found.iter().any(|known| known.pattern == pattern) {
            return self.defined_already(one);
        }
        found.push(one.route(pattern, action, &self.notes));
    }

    fn refused(&mut self, one: &LocationBlock, protection: &Protection) -> Action {
        protection.note_refusal(&one.shown(), &mut self.notes);
        Action::Refuse(protection.status)
    }

    fn defined_already(&mut self, one: &LocationBlock) {
        one.note(" is defined already; this one is left out", &mut self.notes);
    }

    fn not_a_path(&mut self, one: &LocationBlock) {
        let what = " is not a path that a route can have; it is left out";
        one.note(what, &mut self.notes);
    }

    /// Returns the action of a location that forwards; `None` if it is left out.
    ///
    /// `path`: the part that a URI of `proxy_pass` replaces.
    fn forwarded(&mut self, one: &LocationBlock, path: Option<&str>) -> Option<Action> {
        let own = one.networks.clone().unwrap_or_default();
        if let Some(pass) = pass(one.inside()) {
            return self.passed(one, path, pass, (one.scope, own), one.scope);
        }
        let Some((files, target)) = fallback(one) else {
            return self.unforwarded(one, path);
        };
        let (name, inside) = (target.arg(0), target.inside());
        let Some(pass) = pass(inside) else {
            return self.unforwarded(one, path);
        };
        let what = format!("try_files: drip serves no files; all requests go to {name}");
        self.notes.add(files.at, what);
        let scope = one.around.scope.inside(inside);
        let mut networks = own;
        if let Some(mut protection) = Protection::of_location(inside, &one.around, &scope) {
            let theirs = protection.networks(&scope, &self.clients);
            // In nginx a client must be allowed by both lists of networks.
            let fits = |theirs: &Networks| networks.is_empty() || networks == *theirs;
            let Some(both) = theirs.filter(fits) else {
                protection.note_refusal(&format!("location {name}"), &mut self.notes);
                return Some(Action::Refuse(protection.status));
            };
            networks = both;
        }
        // nginx applies the limits of the first location, or of the named location if it has none.
        let limits = one.scope.within(inside);
        self.passed(one, path, pass, (&scope, networks), &limits)
    }

    /// Returns the action for requests that nginx does not forward.
    fn unforwarded(&mut self, one: &LocationBlock, path: Option<&str>) -> Option<Action> {
        if path == Some("/") && redirects(one.inside()) {
            one.note(" has no proxy_pass and is left out; its requests go to the longest path that matches", &mut self.notes);
            return None;
        }
        one.note(
            " has no proxy_pass: nginx answers it itself, and drip refuses its requests with 404",
            &mut self.notes,
        );
        Some(Action::Absent)
    }

    /// Returns the action of requests that `pass` forwards, with the settings of `scope`.
    ///
    /// `limits`: the blocks whose limits apply.
    fn passed(
        &mut self,
        one: &LocationBlock,
        path: Option<&str>,
        pass: &Directive,
        (scope, networks): (&Scope, Networks),
        limits: &Scope,
    ) -> Option<Action> {
        let spot = Spot {
            scope,
            server: one.around.server,
            path,
            server_name: one.around.name,
        };
        let (zones, notes) = (&self.zones, &mut self.notes);
        let lost_before = notes.lost();
        let connections = Connections::read(limits, zones, notes);
        let found = self.origins.of(pass, &spot, &connections, notes);
        let found = found.map_err(|why| note(pass, &why, notes));
        let target = found.ok()?;
        self.bodies.push(body_size(limits, notes));
        let requests = LimitSet::requests(limits, zones, notes);
        let limits_origin = connections.most.is_some();
        let limits = Limits::together(requests, connections.of_keys, one.directive.at, notes);
        if notes.lost() > lost_before && limits.list.is_empty() && !limits_origin {
            notes.is_unlimited(one.with_host());
        }
        let (strip, add) = path.map(str::to_owned).zip(target.prefix).unzip();
        Some(Action::Forward(Box::new(Forward {
            origin: target.origin,
            response_timeout: target.response_timeout,
            limits,
            strip,
            add,
            fields: Fields::of_requests(scope, notes),
            responses: Fields::of_responses(scope, notes),
            networks,
        })))
    }
}

/// Returns the `try_files` of a location, and the named location at its end.
fn fallback<'t>(one: &LocationBlock<'t>) -> Option<(&'t Directive, &'t Directive)> {
    let files = one.scope.get("try_files")?;
    let name = files.args.last().filter(|last| last.starts_with('@'))?;
    let mut locations = named(one.around.block, "location");
    let target = locations.find(|location| location.args.first() == Some(name))?;
    Some((files, target))
}

/// Returns the path that nginx answers with a redirect to a location that forwards.
///
/// nginx redirects `/api` to a `location /api/`, unless there is also a location for `/api`.
fn redirected<'p>(beside: &[Directive], path: &'p str) -> Option<&'p str> {
    let bare = path.strip_suffix('/')?;
    let is_bare = |location: &Directive| matches!(kind(&location.args), Kind::Path { path, .. } if path == bare);
    (!bare.is_empty() && !named(beside, "location").any(is_bare)).then_some(bare)
}

/// Returns whether a block answers with a redirect.
pub(super) fn redirects(block: &[Directive]) -> bool {
    named(block, "return").next().is_some_and(|it| {
        let code = it.arg(0);
        code.starts_with('3') || code.contains("://")
    })
}

/// Returns the beginning of a path, up to the first character that was not UTF-8.
fn readable(text: &str) -> &str {
    text.split('\u{fffd}').next().unwrap_or_default()
}

/// Returns the value of `client_max_body_size` in bytes. 0 means no limit.
fn body_size(scope: &Scope, notes: &mut Notes) -> Option<u64> {
    let directive = scope.get("client_max_body_size")?;
    let text = directive.arg(0);
    let size = values::size(text);
    if size.is_none() {
        let message =
            format!("client_max_body_size: \"{text}\" is not a size; the default is used");
        notes.add(directive.at, message);
    }
    size
}
