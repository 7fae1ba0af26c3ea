use super::listen::{self, Listen};
use super::pass::Pass;
use super::protection::{self, error_status};
use super::scope::{Scope, named};
use super::{hints, probe};
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;

/// A `server` block.
pub(super) struct Server<'t> {
    pub(super) block: &'t [Directive],
    pub(super) place: Place,
    pub(super) listens: Vec<Listen>,
    /// The names that a route can match.
    pub(super) names: Vec<String>,
    /// Whether it has names that no route can match, such as wildcards.
    pub(super) has_other_names: bool,
    /// Whether nginx refuses some of its requests.
    pub(super) protects: bool,
    /// Whether nginx forwards some of its requests.
    pub(super) forwards: bool,
}

impl<'t> Server<'t> {
    pub(super) fn read(directive: &'t Directive, http: &Scope, notes: &mut Notes) -> Self {
        let block = directive.inside();
        hints::unhandled(block, notes);
        let mut listens = named(block, "listen")
            .filter_map(|listen| Listen::read(listen, notes))
            .collect::<Vec<_>>();
        if named(block, "listen").next().is_none() {
            listens.push(Listen::anywhere());
        }
        let mut names: Vec<String> = Vec::new();
        let mut has_other_names = false;
        for directive in named(block, "server_name") {
            for name in &directive.args {
                let whole = name.strip_prefix('.').unwrap_or(name);
                if name.starts_with('.') {
                    has_other_names = true;
                    notes.add(
                        directive.place,
                        format!(
                            "server_name {name}: wildcards are not translated; only {whole} is used"
                        ),
                    );
                }
                let lower = whole.to_ascii_lowercase();
                if name == "_" || name.is_empty() || names.contains(&lower) {
                    continue;
                }
                // A route with a wildcard would need copies for each host below it.
                if probe::host(&lower) && !lower.contains('*') {
                    names.push(lower);
                } else {
                    has_other_names = true;
                    notes.add(
                        directive.place,
                        format!(
                            "server_name {name}: only whole names are translated; this one is left out"
                        ),
                    );
                }
            }
        }
        Self {
            block,
            place: directive.place,
            listens,
            names,
            has_other_names,
            protects: protection::in_server(block, &http.inside(block)),
            forwards: !answers_all(block) && forwards(block),
        }
    }

    /// Whether only programs of this machine reach it.
    pub(super) fn is_local(&self) -> bool {
        let mut listens = self.listens.iter();
        !self.listens.is_empty() && listens.all(|listen| listen::is_local(&listen.address))
    }

    pub(super) fn has_tls(&self) -> bool {
        self.listens.iter().any(|listen| listen.tls)
    }
}

/// Whether nginx answers all requests of a server itself, and with no error.
pub(super) fn answers_all(block: &[Directive]) -> bool {
    let mut returns = named(block, "return");
    returns.next().is_some_and(|it| error_status(it).is_none())
}

/// Whether a block has a location that forwards.
fn forwards(block: &[Directive]) -> bool {
    Pass::of(block).is_some() || named(block, "location").any(|it| forwards(it.inside()))
}
