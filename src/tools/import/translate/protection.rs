//! Finds out what protects a location from some or all clients.
//!
//! A location is protected if not everybody may send requests to it: by networks of clients, by a
//! password, or because nginx answers with an error. drip checks only networks. It refuses all
//! requests of a location that is protected in any other way.

use super::directives::error_status;
use super::networks::Networks;
use super::scope::{EnclosingServer, Scope, named};
use crate::import::notes::SourceLocation;
use crate::import::tree::Directive;

/// Directives that require a password, a token or the consent of another program.
const CHECKS: &str = "access_by_lua access_by_lua_block access_by_lua_file auth_basic auth_digest \
    auth_gss auth_jwt auth_jwt_require auth_ldap auth_oidc auth_pam auth_request";

/// Directives about client addresses. The first one that matches a client decides.
const RULES: [&str; 2] = ["allow", "deny"];

/// Variables that depend only on the connection and the requested name.
const CONNECTION_VARIABLES: &str =
    "$host $http_host $http_x_forwarded_proto $https $scheme $server_port";

/// Statuses with which drip refuses requests.
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;

/// Protection of a location, and the status with which drip refuses its requests.
#[derive(Clone, Debug)]
pub(super) struct Protection<'t> {
    pub(super) status: u16,
    at: SourceLocation<'t>,
    /// The protecting directive, as nginx writes it.
    by: String,
    /// Whether only `allow` and `deny` protect the location.
    is_by_networks: bool,
    /// The allowed and denied networks; `None` if drip refuses all requests.
    pub(super) networks: Option<Networks>,
    /// Reason why drip cannot check the networks, if there is a special one.
    why_unchecked: Option<String>,
}

impl<'t> Protection<'t> {
    /// Returns the protection of a block; `None` if everybody may send requests to it.
    ///
    /// `server`: block of the server, whose `return` and `if` apply before all locations. `scope`:
    /// the blocks from which the block inherits. The result has no networks yet.
    pub(super) fn of(
        block: &'t [Directive<'t>],
        server: &'t [Directive<'t>],
        scope: &Scope<'t>,
    ) -> Option<Self> {
        let by = |status, directive: &Directive<'t>| Self::new(status, directive, &directive.name);
        Self::by_return(server)
            .or_else(|| Self::by_return(block))
            .or_else(|| Some(by(NOT_FOUND, scope.get("internal")?)))
            .or_else(|| Self::by_condition(server))
            .or_else(|| Self::by_condition(block))
            .or_else(|| Some(by(FORBIDDEN, named(block, "limit_except").next()?)))
            .or_else(|| Self::inherited(scope))
    }

    /// Returns the protection of a location, with the networks if nothing else protects it.
    ///
    /// Its own directives protect it, and so does a `rewrite` if the server protects something:
    /// nginx checks a rewritten request by its new path. `why_addresses_differ`: see
    /// [`Networks::of`].
    pub(super) fn of_location(
        block: &'t [Directive<'t>],
        server: &EnclosingServer<'t>,
        scope: &Scope<'t>,
        why_addresses_differ: Option<&str>,
    ) -> Option<Self> {
        let own = Self::of(block, server.block, scope);
        if own.as_ref().is_some_and(|own| !own.is_by_networks) {
            return own;
        }
        let server_rewrites = rewrites(server.block, true).into_iter();
        let mut all = server_rewrites.chain(rewrites(block, false));
        if let Some(rewrite) = all.next().filter(|_| server.protects) {
            let by = format!("rewrite {}", rewrite.args.join(" "));
            return Some(Self::new(FORBIDDEN, rewrite, &by));
        }
        let mut own = own?;
        match Networks::of(&scope.all_of(&RULES), why_addresses_differ) {
            Ok(networks) => own.networks = Some(networks),
            Err(why) => own.why_unchecked = why,
        }
        Some(own)
    }

    /// Returns the protection of a location by nested ones, which drip cannot separate from it.
    pub(super) fn by_nested(location: &Directive<'t>) -> Self {
        Self::new(FORBIDDEN, location, "a location within")
    }

    /// Creates a protection by a directive, which notes call `by`.
    fn new(status: u16, directive: &Directive<'t>, by: &str) -> Self {
        Self {
            status,
            at: directive.at,
            by: by.to_owned(),
            is_by_networks: false,
            networks: None,
            why_unchecked: None,
        }
    }

    /// Returns the protection by directives that inner blocks inherit.
    fn inherited(scope: &Scope<'t>) -> Option<Self> {
        let mut checks = CHECKS.split(' ').filter_map(|name| scope.get(name));
        if let Some(check) = checks.find(|check| check.arg(0) != "off") {
            return Some(Self::new(FORBIDDEN, check, &check.name));
        }
        let verify_client = scope.get("ssl_verify_client").filter(|directive| {
            let value = directive.arg(0);
            value != "off" && !value.starts_with("optional")
        });
        if let Some(directive) = verify_client {
            return Some(Self::new(FORBIDDEN, directive, &directive.name));
        }
        // The first rule that matches a client applies. A client that matches none may pass.
        let is_open = |rule: &&Directive| rule.name == "allow" && rule.arg(0) == "all";
        let rules = scope.all_of(&RULES).into_iter();
        let mut effective = rules.take_while(|rule| !is_open(rule));
        let deny = effective.find(|rule| rule.name == "deny")?;
        Some(Self {
            is_by_networks: true,
            ..Self::new(FORBIDDEN, deny, "deny")
        })
    }

    /// Returns the protection by a `return` with an error status.
    fn by_return(block: &[Directive<'t>]) -> Option<Self> {
        named(block, "return").find_map(|directive| {
            let status = error_status(directive)?;
            let by = format!("return {}", directive.args.join(" "));
            Some(Self::new(status, directive, &by))
        })
    }

    /// Returns the protection by an `if` that answers requests itself.
    ///
    /// Answers with 2xx and redirects to HTTPS or another name do not count.
    fn by_condition(block: &[Directive<'t>]) -> Option<Self> {
        named(block, "if").find_map(|condition| {
            let inside = condition.inside();
            let by = format!("if {}", condition.args.join(" "));
            if let Some(refused) = Self::by_return(inside) {
                return Some(Self::new(refused.status, condition, &by));
            }
            let target = if let Some(returned) = named(inside, "return").next() {
                if returned.arg(0).starts_with('2') {
                    return None;
                }
                returned.args.last().map_or("", String::as_str)
            } else {
                named(inside, "rewrite").find(|it| is_redirect(it))?.arg(1)
            };
            // The variable that the condition tests.
            let tested = condition.arg(0).trim_matches(['(', ')']);
            let is_elsewhere = target.starts_with("https://") || target.starts_with("$scheme://");
            // Such a redirect protects nothing.
            let is_plain = CONNECTION_VARIABLES.split(' ').any(|it| it == tested) && is_elsewhere;
            (!is_plain).then(|| Self::new(FORBIDDEN, condition, &by))
        })
    }

    /// Adds a note on the protection of the location `shown`, and that the location is refused.
    pub(super) fn note_refusal(&self, shown: &str) {
        let Self { status, by, .. } = self;
        let why = match &self.why_unchecked {
            Some(why) => format!("{why}, so drip"),
            None => "drip does not check that, so it".to_owned(),
        };
        self.at.note(format!(
            "{by} protects {shown} in nginx; {why} refuses all its requests with {status}"
        ));
    }
}

/// Returns whether something protects a location of a block, or a nested one.
pub(super) fn protects_location(block: &[Directive], server: &[Directive], scope: &Scope) -> bool {
    named(block, "location").any(|location| {
        let inside = location.inside();
        let scope = scope.inside(inside);
        Protection::of(inside, server, &scope).is_some()
            || protects_location(inside, server, &scope)
    })
}

/// Returns the `rewrite` directives after which nginx looks for a location again.
///
/// Includes those of each `if` in the block. `is_server`: the block is that of a server.
fn rewrites<'t>(block: &'t [Directive<'t>], is_server: bool) -> Vec<&'t Directive<'t>> {
    let inside = named(block, "if").flat_map(Directive::inside);
    let all = block.iter().chain(inside).filter(|it| it.name == "rewrite");
    // With `break` in a location, nginx does not look for another one.
    let stays = |it: &Directive| !is_server && it.args.last().is_some_and(|flag| flag == "break");
    all.filter(|it| !is_redirect(it) && !stays(it)).collect()
}

/// Returns whether a `rewrite` answers with a redirect.
fn is_redirect(rewrite: &Directive) -> bool {
    let target = rewrite.arg(1);
    let starts = ["http://", "https://", "$scheme"];
    ["redirect", "permanent"].contains(&rewrite.arg(2))
        || starts.iter().any(|it| target.starts_with(it))
}
