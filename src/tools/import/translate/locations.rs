//! Translates `location` blocks.

use super::directives;
use super::fields::Fields;
use super::limits::{Connections, LimitSet, Limits};
use super::location_kind::{Kind, kind};
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
    around: EnclosingServer<'s>,
    protection: Option<Protection<'s>>,
    /// Clients that are allowed, if drip can check all that protects the location.
    networks: Option<Networks>,
    /// Number of notes that existed before this location was read.
    before: usize,
}

impl<'t> LocationBlock<'t, '_> {
    fn inside(&self) -> &'t [Directive<'t>] {
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

    fn route(&self, pattern: Pattern, action: Action) -> Location<'t> {
        Location {
            comments: self.directive.at.notes.since(self.before),
            ..Location::new(pattern, action, self.directive.at)
        }
    }

    /// Returns the action for requests that nginx does not forward.
    fn unforwarded(&self, path: Option<&str>) -> Option<Action> {
        if path == Some("/") && redirects(self.inside()) {
            self.note(" has no proxy_pass and is left out; its requests go to the longest path that matches");
            return None;
        }
        self.note(
            " has no proxy_pass: nginx answers it itself, and drip refuses its requests with 404",
        );
        Some(Action::Absent)
    }

    fn refused(&self, protection: &Protection) -> Action {
        protection.note_refusal(&self.shown());
        Action::Refuse(protection.status)
    }

    fn defined_already(&self) {
        self.note(" is defined already; this one is left out");
    }

    fn not_a_path(&self) {
        self.note(" is not a path that a route can have; it is left out");
    }

    fn note(&self, what: &str) {
        self.directive.at.note(format!("{}{what}", self.shown()));
    }
}

impl Translation<'_> {
    /// Adds the locations of a block, including nested ones.
    pub(super) fn locations<'t>(
        &mut self,
        block: &'t [Directive<'t>],
        scope: &Scope<'t>,
        around: EnclosingServer,
        found: &mut Vec<Location<'t>>,
    ) {
        for directive in named(block, "location") {
            let inside = directive.inside();
            let scope = scope.inside(inside);
            let before = directive.at.notes.count();
            directives::unknown(inside);
            let mut protection = Protection::of_location(inside, &around, &scope);
            let networks = protection
                .as_mut()
                .and_then(|it| it.networks(&scope, self.differ));
            let one = LocationBlock {
                directive,
                scope: &scope,
                around,
                protection,
                networks,
                before,
            };
            match kind(&directive.args) {
                Kind::Path(pattern) => {
                    self.path(&one, &pattern, block, found);
                    let around = EnclosingServer {
                        within: pattern.text().map(readable),
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
                Kind::Bad => one.not_a_path(),
            }
        }
    }

    /// Adds a location that has a path.
    fn path<'t>(
        &mut self,
        one: &LocationBlock<'t, '_>,
        pattern: &Pattern,
        beside: &[Directive],
        found: &mut Vec<Location<'t>>,
    ) {
        let path = pattern.text().unwrap_or_default();
        if readable(path) != path || !probe::path(path) {
            return Self::no_path(one, readable(path), found);
        }
        let is_same = |known: &Pattern| match (known, pattern) {
            (Pattern::Prefix { path: known, .. }, Pattern::Prefix { path, .. }) => known == path,
            (known, pattern) => known == pattern,
        };
        if found.iter().any(|known| is_same(&known.pattern)) {
            return one.defined_already();
        }
        let (is_checked, bare) = (one.networks.is_some(), redirected(beside, path));
        let action = match &one.protection {
            Some(protection) if !is_checked => one.refused(protection),
            protection => match (self.forwarded(one, Some(path)), protection) {
                (Some(action), _) => action,
                (None, Some(protection)) => one.refused(protection),
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
                let (pattern, action) = (Pattern::Exact(bare.to_owned()), Action::Refuse(status));
                found.push(Location::new(pattern, action, one.directive.at));
            } else if pattern.is_prefix() {
                one.directive.at.note(format!("nginx answers {bare} with a redirect to {path}; drip makes none, and {bare} goes to the longest path that matches"));
            }
        }
        found.push(one.route(pattern.clone(), action));
    }

    /// Refuses the paths that begin with `start`.
    ///
    /// This protects a location whose path no route can express.
    fn no_path<'t>(one: &LocationBlock<'t, '_>, start: &str, found: &mut Vec<Location<'t>>) {
        let Some(protection) = &one.protection else {
            return one.not_a_path();
        };
        let action = one.refused(protection);
        let instead = format!("drip refuses all paths that begin with {start}");
        let what = format!(" cannot be written exactly; {instead}");
        one.note(&what);
        let pattern = Pattern::Regex(expression::prefix(start));
        found.insert(0, one.route(pattern, action));
    }

    /// Adds a location that has a regular expression.
    fn regex<'t>(
        &mut self,
        one: &LocationBlock<'t, '_>,
        pattern: &str,
        ignores_case: bool,
        found: &mut Vec<Location<'t>>,
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
            return Self::add_regex(one, text, action, found);
        }
        let why = if within.is_some() {
            ": drip has no regular expression for a part of a location"
        } else {
            ": drip has no equivalent regular expression"
        };
        let Some(protection) = protection else {
            if exact.is_none() {
                let what = format!("{why}; its requests go to the next route that matches");
                one.note(&what);
            }
            return;
        };
        let action = one.refused(&protection);
        let text = exact.unwrap_or_else(|| {
            // Refusing too many paths is safer than refusing too few.
            let wider = expression::wider(pattern, ignores_case).filter(|_| within.is_none());
            let wider = wider.unwrap_or_else(|| expression::prefix(within.unwrap_or("/")));
            let what = format!("{why}; it refuses all paths that match {wider}");
            one.note(&what);
            wider
        });
        Self::add_regex(one, text, action, found);
    }

    /// Adds the route of a regular expression. nginx uses the first of two equal ones.
    fn add_regex<'t>(
        one: &LocationBlock<'t, '_>,
        text: String,
        action: Action,
        found: &mut Vec<Location<'t>>,
    ) {
        let pattern = Pattern::Regex(text);
        if found.iter().any(|known| known.pattern == pattern) {
            return one.defined_already();
        }
        found.push(one.route(pattern, action));
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
            return one.unforwarded(path);
        };
        let (name, inside) = (target.arg(0), target.inside());
        let Some(pass) = pass(inside) else {
            return one.unforwarded(path);
        };
        let what = format!("try_files: drip serves no files; all requests go to {name}");
        files.at.note(what);
        let scope = one.around.scope.inside(inside);
        let mut networks = own;
        if let Some(mut protection) = Protection::of_location(inside, &one.around, &scope) {
            let theirs = protection.networks(&scope, self.differ);
            // In nginx a client must be allowed by both lists of networks.
            let fits = |theirs: &Networks| networks.is_empty() || networks == *theirs;
            let Some(both) = theirs.filter(fits) else {
                protection.note_refusal(&format!("location {name}"));
                return Some(Action::Refuse(protection.status));
            };
            networks = both;
        }
        // nginx applies the limits of the first location, or of the named location if it has none.
        let limits = one.scope.within(inside);
        self.passed(one, path, pass, (&scope, networks), &limits)
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
        let (zones, notes) = (&self.zones, pass.at.notes);
        let lost_before = notes.lost();
        let connections = Connections::read(limits, zones);
        let spot = (&one.around, scope, path);
        let found = self.origins.of(pass, spot, &connections);
        let found = found.map_err(|why| note(pass, &why));
        let (origin, prefix, response_timeout) = found.ok()?;
        self.bodies.push(body_size(limits));
        let requests = LimitSet::requests(limits, zones);
        let limits_origin = connections.most.is_some();
        let limits = Limits::together(requests, connections.of_keys, one.directive.at);
        if notes.lost() > lost_before && limits.list.is_empty() && !limits_origin {
            notes.is_unlimited(one.with_host());
        }
        let (strip, add) = path.map(str::to_owned).zip(prefix).unzip();
        Some(Action::Forward(Box::new(Forward {
            origin,
            response_timeout,
            limits,
            strip,
            add,
            fields: Fields::of_requests(scope),
            responses: Fields::of_responses(scope),
            networks,
        })))
    }
}

/// Returns the `try_files` of a location, and the named location at its end.
fn fallback<'s>(one: &LocationBlock<'s, 's>) -> Option<(&'s Directive<'s>, &'s Directive<'s>)> {
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
    let is_bare = |location: &Directive| matches!(kind(&location.args), Kind::Path(it) if it.text() == Some(bare));
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
