use super::connections::Connections;
use super::hints;
use super::limits::{LimitSet, Limits};
use super::origins::Spot;
use super::scope::{Scope, named};
use super::{Translation, probe};
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;
use crate::tools::import::values;

/// A location that became a route.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// The path in the form of a route: with `= ` before it if it matches exactly.
    pub(super) path: String,
    pub(super) origin: String,
    pub(super) limits: Limits,
    pub(super) comments: Vec<String>,
    pub(super) place: Place,
}

/// The server that contains the locations.
#[derive(Clone, Copy)]
pub(super) struct Around<'s> {
    pub(super) server: usize,
    pub(super) name: Option<&'s str>,
    pub(super) block: &'s [Directive],
    pub(super) scope: &'s Scope<'s>,
}

enum Kind<'d> {
    Path { exact: bool, path: &'d str },
    Regex,
    Named,
    Bad,
}

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
            let place = directive.place;
            let inside = directive.block.as_deref().unwrap_or_default();
            let scope = scope.inside(inside);
            let before = self.notes.count();
            hints::unhandled(inside, &mut self.notes);
            let shown = directive.args.join(" ");
            match kind(&directive.args) {
                Kind::Path { exact, path } if probe::path(path) => {
                    let title = if exact {
                        format!("= {path}")
                    } else {
                        path.to_owned()
                    };
                    if found.iter().any(|known| known.path == title) {
                        self.notes.add(
                            place,
                            format!("location {shown} is defined already; this one is left out"),
                        );
                    } else {
                        let spot = Spot {
                            scope: &scope,
                            server: around.server,
                            path,
                            server_name: around.name,
                        };
                        if let Some((origin, limits)) =
                            self.forwarded(directive, &spot, around, &shown)
                        {
                            self.redirect(block, exact, path, place);
                            let comments = self.notes.since(before);
                            found.push(Location {
                                path: title,
                                origin,
                                limits,
                                comments,
                                place,
                            });
                        }
                    }
                }
                Kind::Path { .. } | Kind::Bad => {
                    self.notes.add(
                        place,
                        format!(
                            "location {shown} is not a path that a route can have; it is left out"
                        ),
                    );
                }
                Kind::Regex => {
                    self.notes.add(place, format!("location {shown}: drip has no regular expressions; its requests go to the longest path that matches"));
                }
                // Noted where it is used.
                Kind::Named => {}
            }
            self.locations(inside, &scope, around, found);
        }
    }

    /// The origin of a location's requests, and their limits.
    fn forwarded(
        &mut self,
        location: &Directive,
        spot: &Spot,
        around: Around,
        shown: &str,
    ) -> Option<(String, Limits)> {
        let block = location.block.as_deref().unwrap_or_default();
        let own = named(block, "proxy_pass").next();
        let fallback = if own.is_none() {
            self.fallback(block, spot.scope, around)
        } else {
            None
        };
        let (pass, scope, base) = match (own, &fallback) {
            (Some(pass), _) => (pass, spot.scope, None),
            (None, Some((pass, scope))) => (*pass, scope, Some(spot.scope)),
            (None, None) => {
                self.notes.add(location.place, format!("location {shown} has no proxy_pass and is left out; its requests go to the longest path that matches"));
                return None;
            }
        };
        let spot = Spot { scope, ..*spot };
        // If the first location has limits, those of the named location do not apply as well.
        let (zones, notes) = (&self.zones, &mut self.notes);
        let connections = base
            .map(|base| Connections::read(base, zones, notes))
            .filter(|connections| !connections.is_empty());
        let connections = connections.unwrap_or_else(|| Connections::read(scope, zones, notes));
        let origin = self.origins.of(pass, &spot, &connections, notes)?;
        let size = body_size(base.unwrap_or(scope), notes);
        self.bodies.push(size);
        let requests = base
            .map(|base| LimitSet::requests(base, zones, notes))
            .filter(|requests| !requests.list.is_empty());
        let requests = requests.unwrap_or_else(|| LimitSet::requests(scope, zones, notes));
        let limits = Limits::together(requests, connections.of_keys, location.place, notes);
        Some((origin, limits))
    }

    /// Notes a redirect that drip does not make.
    ///
    /// nginx redirects `/api` to a `location /api/` that forwards, unless there is also a location
    /// for `/api`.
    fn redirect(&mut self, beside: &[Directive], exact: bool, path: &str, place: Place) {
        let Some(bare) = path
            .strip_suffix('/')
            .filter(|bare| !exact && !bare.is_empty())
        else {
            return;
        };
        let is_bare = |location: &Directive| matches!(kind(&location.args), Kind::Path { path, .. } if path == bare);
        if !named(beside, "location").any(is_bare) {
            self.notes.add(place, format!("nginx answers {bare} with a redirect to {path}; drip makes none, and {bare} goes to the longest path that matches"));
        }
    }

    /// The named location at the end of `try_files`.
    fn fallback<'t>(
        &mut self,
        block: &[Directive],
        scope: &Scope,
        around: Around<'t>,
    ) -> Option<(&'t Directive, Scope<'t>)> {
        let files = named(block, "try_files")
            .next()
            .or_else(|| scope.get("try_files"))?;
        let name = files.args.last().filter(|last| last.starts_with('@'))?;
        let mut named_locations = named(around.block, "location");
        let target = named_locations.find(|location| location.args.first() == Some(name))?;
        let inside = target.block.as_deref().unwrap_or_default();
        let pass = named(inside, "proxy_pass").next()?;
        self.notes.add(
            files.place,
            format!("try_files: drip serves no files; all requests go to {name}"),
        );
        Some((pass, around.scope.inside(inside)))
    }
}

fn kind(args: &[String]) -> Kind<'_> {
    match args {
        [mark, path] => match &**mark {
            "=" => Kind::Path { exact: true, path },
            "^~" => Kind::Path { exact: false, path },
            "~" | "~*" => Kind::Regex,
            _ => Kind::Bad,
        },
        [path] => {
            if path.starts_with('@') {
                Kind::Named
            } else if path.starts_with('~') {
                Kind::Regex
            } else if let Some(path) = path.strip_prefix('=') {
                Kind::Path { exact: true, path }
            } else {
                let path = path.strip_prefix("^~").unwrap_or(path);
                Kind::Path { exact: false, path }
            }
        }
        _ => Kind::Bad,
    }
}

/// The value of `client_max_body_size` in bytes. 0 means no limit.
fn body_size(scope: &Scope, notes: &mut Notes) -> Option<u64> {
    let directive = scope.get("client_max_body_size")?;
    let text = directive.args.first().map_or("", String::as_str);
    let size = values::size(text);
    if size.is_none() {
        let message =
            format!("client_max_body_size: \"{text}\" is not a size; the default is used");
        notes.add(directive.place, message);
    }
    size
}
