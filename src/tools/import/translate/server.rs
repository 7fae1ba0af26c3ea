//! Reads a `server` block: its addresses and names, and whether it protects or forwards.
//!
//! A server protects something if not everybody may send all of its requests (see `protection`). It
//! forwards if one of its locations has a `proxy_pass`, unless it answers all requests itself.

use super::directives::{self, error_status};
use super::listen::{self, Listen};
use super::origins::pass;
use super::probe;
use super::protection::{self, Protection};
use super::scope::{Scope, named};
use crate::import::notes::SourceLocation;
use crate::import::tree::Directive;

/// A `server` block.
pub(super) struct Server<'t> {
    pub(super) block: &'t [Directive<'t>],
    pub(super) at: SourceLocation<'t>,
    pub(super) listens: Vec<Listen>,
    /// Names that a route can match: full names, and wildcards such as `*.example.com`.
    pub(super) names: Vec<String>,
    /// Whether the server has names that no route can match, such as `mail.*`.
    pub(super) has_other_names: bool,
    /// Whether nginx protects some requests of the server.
    pub(super) protects: bool,
    /// Whether nginx forwards some requests of the server.
    pub(super) forwards: bool,
}

impl<'t> Server<'t> {
    /// Reads the block of `directive`. `http`: the block around it.
    pub(super) fn read(directive: &'t Directive<'t>, http: &Scope<'t>) -> Self {
        let block = directive.inside();
        directives::note_unknown(block);
        let listens = named(block, "listen");
        let mut listens: Vec<_> = listens.filter_map(|it| Listen::read(it)).collect();
        if named(block, "listen").next().is_none() {
            listens.push(Listen::default_address());
        }
        let scope = http.inside(block);
        let mut server = Self {
            block,
            at: directive.at,
            listens,
            names: Vec::new(),
            has_other_names: false,
            protects: Protection::of(&[], block, &scope).is_some()
                || protection::protects_location(block, block, &scope),
            forwards: !answers_all(block) && forwards(block),
        };
        for directive in named(block, "server_name") {
            for name in &directive.args {
                server.add_name(name, directive.at);
            }
        }
        server
    }

    /// Adds a `server_name`. Notes one that a route cannot have.
    fn add_name(&mut self, name: &str, at: SourceLocation) {
        // `_` is the usual name of a server without a name.
        if name == "_" || name.is_empty() {
            return;
        }
        let lower = name.to_ascii_lowercase();
        // `.example.com` means the host itself and all hosts below it.
        let names = match lower.strip_prefix('.') {
            Some(host) => vec![host.to_owned(), format!("*.{host}")],
            None => vec![lower],
        };
        for name in names {
            if !probe::host(&name) {
                self.has_other_names = true;
                at.note(format!("server_name {name}: drip has whole names and wildcards such as *.example.com; this one is left out"));
            } else if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    /// Returns whether the server has an address with TLS.
    pub(super) fn has_tls(&self) -> bool {
        self.listens.iter().any(|listen| listen.has_tls)
    }

    /// Returns the first name that is a single host.
    pub(super) fn host(&self) -> Option<&str> {
        let mut hosts = self.names.iter().filter(|name| !name.starts_with('*'));
        hosts.next().map(String::as_str)
    }

    /// Returns whether only programs of this machine can reach the server.
    pub(super) fn is_local(&self) -> bool {
        let mut listens = self.listens.iter();
        !self.listens.is_empty() && listens.all(|listen| listen::is_local(&listen.address))
    }
}

/// Returns whether nginx answers all requests of a server itself, without errors.
pub(super) fn answers_all(block: &[Directive]) -> bool {
    let mut returns = named(block, "return");
    returns.next().is_some_and(|it| error_status(it).is_none())
}

/// Returns whether a block has a location that forwards.
fn forwards(block: &[Directive]) -> bool {
    pass(block).is_some() || named(block, "location").any(|it| forwards(it.inside()))
}
