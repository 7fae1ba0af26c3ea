use super::kind::Mark;
use super::networks::{ClientAddresses, Networks};
use super::pages::Pages;
use super::protection::Protection;
use super::route::{Action, Location, OtherMethods, Pattern};
use super::scope::{Around, Scope, named};
use super::{pcre, probe};
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// A location that is looked at.
pub(super) struct One<'t> {
    pub(super) directive: &'t Directive,
    pub(super) scope: &'t Scope<'t>,
    pub(super) around: Around<'t>,
    pub(super) protection: Option<Protection>,
    /// The clients that may come, if drip checks all that protects.
    pub(super) networks: Option<Networks>,
    pub(super) pages: Pages,
    /// The number of notes before those on it.
    pub(super) before: usize,
}

impl One<'_> {
    pub(super) fn inside(&self) -> &[Directive] {
        self.directive.inside()
    }

    pub(super) fn shown(&self) -> String {
        self.directive.args.join(" ")
    }

    /// The same with its host, where several servers may have such a location.
    pub(super) fn shown_with_host(&self) -> String {
        let shown = self.shown();
        match self.around.name.filter(|_| self.around.has_others) {
            Some(host) if shown.starts_with('/') => format!("{host}{shown}"),
            Some(host) => format!("{host} {shown}"),
            None => shown,
        }
    }

    /// The paths of a location of a path; `None` if no route can have them.
    pub(super) fn pattern(&self, mark: Mark, path: &str) -> Option<Pattern> {
        let is_exact = mark == Mark::Exact;
        if probe::path(path) {
            let (path, stops) = (path.to_owned(), mark == Mark::Stops);
            return Some(if is_exact {
                Pattern::Exact(path)
            } else {
                Pattern::Prefix { path, stops }
            });
        }
        let expression = if is_exact { pcre::whole } else { pcre::prefix };
        self.protection.as_ref()?;
        Some(Pattern::regex(expression(path)))
    }

    /// Whether a location within this one is refused.
    pub(super) fn refuses_within(&self) -> bool {
        let mut is_refused = false;
        let mut blocks = vec![(self.inside(), self.scope.clone())];
        while let Some((block, scope)) = blocks.pop() {
            for directive in named(block, "location") {
                let inside = directive.inside();
                let scope = scope.inside(inside);
                is_refused |= Protection::of(inside, &[], &scope).is_some();
                blocks.push((inside, scope));
            }
        }
        is_refused
    }

    pub(super) fn route(&self, pattern: Pattern, action: Action, notes: &Notes) -> Location {
        Location {
            pattern,
            action,
            pages: self.pages.clone(),
            comments: notes.since(self.before),
            place: self.directive.place,
        }
    }

    /// The methods of `limit_except`, which the clients of `own` may send, and what becomes of the
    /// others; `None` if they are for the same clients.
    pub(super) fn methods(
        &self,
        own: &Networks,
        clients: &ClientAddresses,
        notes: &mut Notes,
    ) -> Option<(Vec<String>, OtherMethods)> {
        let except = named(self.inside(), "limit_except").next()?;
        let inside = except.inside();
        let mut protection = Protection::of_other_methods(inside, self.scope);
        let networks = match &mut protection {
            Some(protection) => protection.networks(&self.scope.inside(inside), clients, notes),
            None => Some(Networks::default()),
        };
        if networks.as_ref() == Some(own) {
            return None;
        }
        let mut methods: Vec<String> = Vec::new();
        let mut named: Vec<String> = except
            .args
            .iter()
            .map(|it| it.to_ascii_uppercase())
            .collect();
        // Who may GET may also HEAD.
        if named.iter().any(|it| it == "GET") {
            named.push("HEAD".to_owned());
        }
        for method in named {
            if !methods.contains(&method) && probe::method(&method) {
                methods.push(method);
            }
        }
        let others = match (networks, protection) {
            (None, Some(protection)) => {
                let shown = format!("the other methods of location {}", self.shown());
                protection.tell(&shown, notes);
                OtherMethods::Refused(protection.status)
            }
            (networks, _) => OtherMethods::Of(networks.unwrap_or_default()),
        };
        Some((methods, others))
    }
}
