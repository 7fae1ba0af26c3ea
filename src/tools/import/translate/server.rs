use super::hints;
use super::hosts::{Expression, Names};
use super::listen::{self, Listen};
use super::pass::Pass;
use super::protection::{self, error_status};
use super::scope::{Scope, named};
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;

/// A `server` block.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub(super) struct Server<'t> {
    pub(super) block: &'t [Directive],
    pub(super) place: Place,
    pub(super) listens: Vec<Listen>,
    /// The names that a route can match: whole ones, and wildcards such as `*.example.com`.
    pub(super) names: Vec<String>,
    /// Those that are regular expressions.
    pub(super) expressions: Vec<Expression>,
    /// Whether it has names that no route can match, such as `mail.*`.
    pub(super) has_other_names: bool,
    /// Whether nginx refuses some of its requests.
    pub(super) protects: bool,
    /// Whether nginx forwards some of its requests.
    pub(super) forwards: bool,
    /// Whether drip lets no client without a certificate connect to its addresses.
    pub(super) needs_certificates: bool,
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
        let mut read = Names::default();
        for directive in named(block, "server_name") {
            for name in &directive.args {
                read.add(name, directive.place, notes);
            }
        }
        Self {
            block,
            place: directive.place,
            listens,
            names: read.list,
            expressions: read.expressions,
            has_other_names: read.has_others,
            protects: protection::in_server(block, &http.inside(block)),
            forwards: !answers_all(block) && forwards(block),
            needs_certificates: false,
        }
    }

    /// Its first name that is one of a host.
    pub(super) fn host(&self) -> Option<&str> {
        let mut hosts = self.names.iter().filter(|name| !name.starts_with('*'));
        hosts.next().map(String::as_str)
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
