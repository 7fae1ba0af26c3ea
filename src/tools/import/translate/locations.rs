use super::connections::Connections;
use super::fields::Fields;
use super::hints;
use super::kind::{Kind, Mark, kind};
use super::limits::{LimitSet, Limits};
use super::networks::Networks;
use super::one_location::One;
use super::origins::Spot;
use super::pass::Pass;
use super::protection::Protection;
use super::route::{Action, Forward, Location, Pattern};
use super::scope::{Around, Scope, named};
use super::{Translation, pcre, probe};
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;
use crate::tools::import::values;

impl Translation<'_> {
    /// Adds the locations of a block and the locations nested in them.
    pub(super) fn locations(
        &mut self,
        block: &[Directive],
        scope: &Scope,
        around: Around,
        found: &mut Vec<Location>,
    ) {
        for directive in named(block, "location") {
            let inside = directive.inside();
            let scope = scope.inside(inside);
            let before = self.notes.count();
            hints::unhandled(inside, &mut self.notes);
            let mut protection = Protection::of_location(inside, around.block, &scope);
            let networks = protection
                .as_mut()
                .and_then(|it| it.networks(&scope, &self.clients, &mut self.notes));
            let one = One {
                directive,
                scope: &scope,
                around,
                protection,
                networks,
                pages: self.pages(inside, &scope, around),
                before,
            };
            match kind(&directive.args) {
                Kind::Path { mark, path } => {
                    self.path(&one, mark, path, block, found);
                    let around = Around {
                        within: Some(readable(path)),
                        ..around
                    };
                    self.locations(inside, &scope, around, found);
                }
                Kind::Regex {
                    pattern,
                    ignores_case,
                } => {
                    let translated = pcre::translate(pattern, ignores_case);
                    let is_read = readable(pattern) == pattern;
                    self.regex(&one, translated.filter(|_| is_read).as_ref(), found);
                }
                // Noted where it is used.
                Kind::Named => {
                    if let Some(page) = named(inside, "error_page").next() {
                        self.notes.add(page.place, "error_page of a named location is not translated: put pages on the routes that it became");
                    }
                }
                Kind::Bad => self.not_a_path(&one),
            }
        }
    }

    /// Adds a location of a path.
    fn path(
        &mut self,
        one: &One,
        mark: Mark,
        path: &str,
        beside: &[Directive],
        found: &mut Vec<Location>,
    ) {
        let place = one.directive.place;
        if readable(path) != path {
            return self.unreadable(one, readable(path), found);
        }
        let Some(pattern) = one.pattern(mark, path) else {
            return self.not_a_path(one);
        };
        let shown = one.shown();
        let is_same = |known: &Pattern| match (known, &pattern) {
            (Pattern::Prefix { path: known, .. }, Pattern::Prefix { path, .. }) => known == path,
            (known, pattern) => known == pattern,
        };
        if found.iter().any(|known| is_same(&known.pattern)) {
            return self.defined_already(one);
        }
        let bare = redirected(beside, path);
        let refused = |bare: &str, status| Location {
            pattern: Pattern::Exact(bare.to_owned()),
            action: Action::Refuse(status),
            pages: one.pages.clone(),
            comments: Vec::new(),
            place,
        };
        let forwarded = match &one.protection {
            Some(_) if one.networks.is_none() || !probe::path(path) => None,
            _ => self.forwarded(one, Some(path)),
        };
        let action = if let (None, Some(protection)) = (&forwarded, &one.protection) {
            protection.tell(&format!("location {shown}"), &mut self.notes);
            if let Some(bare) = bare.filter(|_| Pass::of(one.inside()).is_some()) {
                // nginx answers it with a redirect to a path that is refused.
                found.push(refused(bare, protection.status));
            }
            Action::Refuse(protection.status)
        } else {
            let Some(action) = forwarded else {
                return;
            };
            if let (Some(bare), Action::Forward(forward)) = (bare, &action) {
                if let Some(status) = forward.refuses() {
                    found.push(refused(bare, status));
                } else if mark != Mark::Exact {
                    self.notes.add(place, format!("nginx answers {bare} with a redirect to {path}; drip makes none, and {bare} goes to the longest path that matches"));
                }
            }
            action
        };
        found.push(one.route(pattern, action, &self.notes));
    }

    /// Refuses the paths that begin with `start`, which is what can be read of a protected path.
    fn unreadable(&mut self, one: &One, start: &str, found: &mut Vec<Location>) {
        let Some(protection) = &one.protection else {
            return self.not_a_path(one);
        };
        let shown = one.shown();
        protection.tell(&format!("location {shown}"), &mut self.notes);
        self.notes.add(one.directive.place, format!("location {shown} cannot be written exactly; drip refuses all paths that begin with {start}"));
        let pattern = Pattern::regex(pcre::prefix(start));
        let route = one.route(pattern, Action::Refuse(protection.status), &self.notes);
        found.insert(0, route);
    }

    /// Adds a location of a regular expression; `translated`: in drip's syntax, if it can be.
    fn regex(
        &mut self,
        one: &One,
        translated: Option<&pcre::Translated>,
        found: &mut Vec<Location>,
    ) {
        let place = one.directive.place;
        let shown = one.shown();
        let mut protection = one.protection.clone();
        if protection.is_none() && one.refuses_within() {
            let by = "a location within".to_owned();
            protection = Some(Protection::because(place, by));
        }
        let has_nested = named(one.inside(), "location").next().is_some();
        if has_nested && protection.is_none() {
            self.notes.add(place, format!("location {shown}: the locations within are left out; their requests are those of this one"));
        }
        let within = one.around.within;
        let confined = |it: &pcre::Translated| match within {
            Some(prefix) => pcre::beneath(prefix, &it.text),
            None => Some(it.text.clone()),
        };
        let exact = translated.filter(|it| it.is_exact).and_then(confined);
        let is_open = protection.is_none() || (one.networks.is_some() && !has_nested);
        if let Some(text) = exact.clone().filter(|_| is_open)
            && let Some(action) = self.forwarded(one, None)
        {
            return self.add_regex(one, text, action, found);
        }
        let Some(protection) = protection else {
            if exact.is_none() {
                self.notes.add(place, format!("location {shown}: drip has no such regular expression; its requests go to the route that matches otherwise"));
            }
            return;
        };
        protection.tell(&format!("location {shown}"), &mut self.notes);
        let text = exact.unwrap_or_else(|| {
            // Rather too many are refused than too few.
            let wider = translated.and_then(confined);
            let wider = wider.unwrap_or_else(|| pcre::prefix(within.unwrap_or("/")));
            self.notes.add(place, format!("location {shown}: drip has no such regular expression; it refuses the paths of {wider}, which are more"));
            wider
        });
        self.add_regex(one, text, Action::Refuse(protection.status), found);
    }

    /// Adds the route of a regular expression. Of two that are equal, nginx takes the first.
    fn add_regex(&mut self, one: &One, text: String, action: Action, found: &mut Vec<Location>) {
        let pattern = Pattern::Regex {
            text,
            within: one.around.within.map(str::to_owned),
        };
        if found.iter().any(|known| known.pattern == pattern) {
            return self.defined_already(one);
        }
        found.push(one.route(pattern, action, &self.notes));
    }

    fn defined_already(&mut self, one: &One) {
        let shown = one.shown();
        let message = format!("location {shown} is defined already; this one is left out");
        self.notes.add(one.directive.place, message);
    }

    fn not_a_path(&mut self, one: &One) {
        let shown = one.shown();
        self.notes.add(
            one.directive.place,
            format!("location {shown} is not a path that a route can have; it is left out"),
        );
    }

    /// The origin of a location's requests, and what becomes of them.
    ///
    /// `path`: what a URI of `proxy_pass` replaces.
    fn forwarded(&mut self, one: &One, path: Option<&str>) -> Option<Action> {
        let own = one.networks.clone().unwrap_or_default();
        if let Some(pass) = Pass::of(one.inside()) {
            return self.passed(one, path, pass, (one.scope, own), None);
        }
        let Some(mut fallback) = self.fallback(one.inside(), one.scope, one.around) else {
            return self.unforwarded(one, path);
        };
        let mut networks = own.clone();
        if let Some(mut protection) = fallback.protection.take() {
            let theirs = protection.networks(&fallback.scope, &self.clients, &mut self.notes);
            let fits = |theirs: &Networks| own.is_empty() || own == *theirs;
            if !theirs.as_ref().is_none_or(fits) {
                protection = protection.why(
                    "these rules and those of the location that falls back to it both hold there",
                );
            }
            let Some(both) = theirs.filter(fits) else {
                protection.tell(&format!("location {}", fallback.name), &mut self.notes);
                return Some(Action::Refuse(protection.status));
            };
            networks = both;
        }
        let (pass, scope) = (fallback.pass, &fallback.scope);
        self.passed(one, path, pass, (scope, networks), Some(one.scope))
    }

    /// What becomes of requests that nginx does not forward.
    fn unforwarded(&mut self, one: &One, path: Option<&str>) -> Option<Action> {
        let (place, shown) = (one.directive.place, one.shown());
        if path == Some("/") && redirects(one.inside()) {
            self.notes.add(place, format!("location {shown} has no proxy_pass or grpc_pass and is left out; its requests go to the longest path that matches"));
            return None;
        }
        self.notes.add(place, format!("location {shown} has no proxy_pass or grpc_pass: nginx answers it itself, and drip refuses its requests with 404"));
        Some(Action::Absent)
    }

    /// Where requests go that `pass` forwards, with the settings of `scope`, and of which clients.
    ///
    /// `base`: the scope of the location that passes them to a named one.
    fn passed(
        &mut self,
        one: &One,
        path: Option<&str>,
        pass: Pass,
        (scope, networks): (&Scope, Networks),
        base: Option<&Scope>,
    ) -> Option<Action> {
        let spot = Spot {
            scope,
            server: one.around.server,
            path,
            server_name: one.around.name,
            files: self.files,
        };
        // If the first location has limits, those of the named location do not apply as well.
        let (zones, notes) = (&self.zones, &mut self.notes);
        let lost_before = notes.lost();
        let connections = base
            .map(|base| Connections::read(base, zones, notes))
            .filter(|connections| !connections.is_empty());
        let connections = connections.unwrap_or_else(|| Connections::read(scope, zones, notes));
        let chosen = self.choosers.of(pass);
        let to = chosen
            .as_ref()
            .map_or(pass, |chosen| pass.to(&chosen.default));
        let (origin, prefix) = self.origins.of(to, &spot, &connections, notes)?;
        let mut choices = Vec::new();
        for (condition, target) in chosen.iter().flat_map(|chosen| &chosen.values) {
            let (origin, _) = self
                .origins
                .of(pass.to(target), &spot, &connections, notes)?;
            choices.push((condition.clone(), origin));
        }
        if let Some(chosen) = &chosen {
            self.zones.translated.extend(&chosen.places);
            if chosen.is_decoded {
                pass.note("drip compares arguments and cookies decoded, and nginx as the client wrote them", notes);
            }
        }
        let zones = &self.zones;
        let size = body_size(base.unwrap_or(scope), notes);
        self.bodies.push(size);
        let requests = base
            .map(|base| LimitSet::requests(base, zones, notes))
            .filter(|requests| !requests.list.is_empty());
        let requests = requests.unwrap_or_else(|| LimitSet::requests(scope, zones, notes));
        let limits_origin = connections.most.is_some();
        let limits = Limits::together(requests, connections.of_keys, one.directive.place, notes);
        if notes.lost() > lost_before && limits.list.is_empty() && !limits_origin {
            notes.is_unlimited(one.shown_with_host());
        }
        let fields = Fields::of_requests(pass, scope, notes);
        let responses = Fields::of_responses(scope, notes);
        let methods = one.methods(&networks, &self.clients, notes);
        Some(Action::Forward(Box::new(Forward {
            origin,
            limits,
            choices,
            rewrite: path.map(str::to_owned).zip(prefix),
            fields,
            responses,
            networks,
            methods,
        })))
    }
}

/// The path that nginx answers with a redirect to a location that forwards.
///
/// nginx redirects `/api` to a `location /api/`, unless there is also a location for `/api`.
fn redirected<'p>(beside: &[Directive], path: &'p str) -> Option<&'p str> {
    let bare = path.strip_suffix('/')?;
    let is_bare = |location: &Directive| matches!(kind(&location.args), Kind::Path { path, .. } if path == bare);
    (!bare.is_empty() && !named(beside, "location").any(is_bare)).then_some(bare)
}

/// Whether a block answers with a redirect.
pub(super) fn redirects(block: &[Directive]) -> bool {
    named(block, "return").next().is_some_and(|it| {
        let code = it.arg(0);
        code.starts_with('3') || code.contains("://")
    })
}

/// The beginning of a path or an expression up to what was not UTF-8.
fn readable(text: &str) -> &str {
    text.split('\u{fffd}').next().unwrap_or_default()
}

/// The value of `client_max_body_size` in bytes. 0 means no limit.
fn body_size(scope: &Scope, notes: &mut Notes) -> Option<u64> {
    let directive = scope.get("client_max_body_size")?;
    let text = directive.arg(0);
    let size = values::size(text);
    if size.is_none() {
        let message =
            format!("client_max_body_size: \"{text}\" is not a size; the default is used");
        notes.add(directive.place, message);
    }
    size
}
