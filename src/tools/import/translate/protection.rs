//! Finds out what protects a location from some or all clients.
//!
//! drip checks networks of clients. It refuses all requests of a location that is protected in any
//! other way.

use super::directives::error_status;
use super::networks::Networks;
use super::scope::{EnclosingServer, Scope, named};
use crate::import::notes::SourceLocation;
use crate::import::tree::Directive;

/// Directives that require a password, a token or the consent of another program.
const CHECKS: &str = "access_by_lua access_by_lua_block access_by_lua_file auth_basic auth_digest \
    auth_gss auth_jwt auth_jwt_require auth_ldap auth_oidc auth_pam auth_request";

/// Directives about client addresses. The first one that matches decides.
const RULES: [&str; 2] = ["allow", "deny"];

/// Variables that depend only on the connection and the requested name.
const OF_ADDRESS: &str = "$host $http_host $http_x_forwarded_proto $https $scheme $server_port";

/// Status with which drip refuses requests.
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;

/// Reason why the requests of a location are refused.
#[derive(Clone, Debug)]
pub(super) struct Protection<'t> {
    pub(super) status: u16,
    at: SourceLocation<'t>,
    by: String,
    /// Whether only `allow` and `deny` protect the location.
    is_by_networks: bool,
    /// Reason why drip cannot check the protection.
    why: Option<String>,
}

impl<'t> Protection<'t> {
    /// Returns the protection of a block; `None` if everybody may send requests to it.
    ///
    /// `server`: block of the server, whose `return` and `if` apply before all locations.
    pub(super) fn of(
        block: &'t [Directive<'t>],
        server: &'t [Directive<'t>],
        scope: &Scope<'t>,
    ) -> Option<Self> {
        let blocks = [server, block];
        let by = |status, directive: &Directive<'t>| Self::new(status, directive, &directive.name);
        let returns = blocks.iter().find_map(|block| Self::by_return(block));
        returns
            .or_else(|| Some(by(NOT_FOUND, scope.get("internal")?)))
            .or_else(|| blocks.iter().find_map(|block| Self::by_condition(block)))
            .or_else(|| Some(by(FORBIDDEN, named(block, "limit_except").next()?)))
            .or_else(|| Self::inherited(scope))
    }

    /// Returns the protection of a location.
    ///
    /// Its own directives protect it, and so does a `rewrite` if the server protects something:
    /// nginx checks a rewritten request by its new path.
    pub(super) fn of_location(
        block: &'t [Directive<'t>],
        around: &EnclosingServer<'t>,
        scope: &Scope<'t>,
    ) -> Option<Self> {
        let own = Self::of(block, around.block, scope);
        if own.as_ref().is_some_and(|own| !own.is_by_networks) {
            return own;
        }
        let of_server = rewrites(around.block, true).into_iter();
        let mut all = of_server.chain(rewrites(block, false));
        let Some(rewrite) = all.next().filter(|_| around.protects) else {
            return own;
        };
        let by = format!("rewrite {}", rewrite.args.join(" "));
        Some(Self::new(FORBIDDEN, rewrite, &by))
    }

    /// Returns the protection of a location by nested ones, which drip cannot separate from it.
    pub(super) fn by_nested(location: &Directive<'t>) -> Self {
        Self::new(FORBIDDEN, location, "a location within")
    }

    /// Returns the networks of allowed clients, if nothing else protects the location.
    ///
    /// `scope`: the blocks around the rules. `differ`: see [`Networks::of`]. Records the reason if drip cannot check the networks.
    pub(super) fn networks(&mut self, scope: &Scope, differ: Option<&str>) -> Option<Networks> {
        if !self.is_by_networks {
            return None;
        }
        let networks = Networks::of(&scope.all_of(&RULES), differ);
        networks.map_err(|why| self.why = why).ok()
    }

    fn new(status: u16, directive: &Directive<'t>, by: &str) -> Self {
        Self {
            status,
            at: directive.at,
            by: by.to_owned(),
            is_by_networks: false,
            why: None,
        }
    }

    /// Returns the protection by directives that inner blocks inherit.
    fn inherited(scope: &Scope<'t>) -> Option<Self> {
        let mut checks = CHECKS.split(' ').filter_map(|name| scope.get(name));
        if let Some(check) = checks.find(|check| check.arg(0) != "off") {
            return Some(Self::new(FORBIDDEN, check, &check.name));
        }
        let verifies = scope.get("ssl_verify_client").filter(|verifies| {
            let value = verifies.arg(0);
            value != "off" && !value.starts_with("optional")
        });
        if let Some(verifies) = verifies {
            return Some(Self::new(FORBIDDEN, verifies, &verifies.name));
        }
        // The first rule that matches a client applies. A client that matches none may pass.
        let is_open = |rule: &&Directive| rule.name == "allow" && rule.arg(0) == "all";
        let rules = scope.all_of(&RULES).into_iter();
        let mut rules = rules.take_while(|rule| !is_open(rule));
        let deny = rules.find(|rule| rule.name == "deny")?;
        Some(Self {
            is_by_networks: true,
            ..Self::new(FORBIDDEN, deny, "deny")
        })
    }

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
            let tested = condition.arg(0).trim_matches(['(', ')']);
            let is_elsewhere = target.starts_with("https://") || target.starts_with("$scheme://");
            let is_plain = OF_ADDRESS.split(' ').any(|it| it == tested) && is_elsewhere;
            (!is_plain).then(|| Self::new(FORBIDDEN, condition, &by))
        })
    }

    /// Adds a note on the protection of the location `shown`, and that the location is refused.
    pub(super) fn note_refusal(&self, shown: &str) {
        let Self { status, by, .. } = self;
        let why = match &self.why {
            Some(why) => format!("{why}, so drip"),
            None => "drip does not check that, so it".to_owned(),
        };
        self.at.note(format!(
            "{by} protects {shown} in nginx; {why} refuses all its requests with {status}"
        ));
    }
}

/// Returns whether a location of a block, or a nested one, is protected.
pub(super) fn is_within(block: &[Directive], server: &[Directive], scope: &Scope) -> bool {
    named(block, "location").any(|location| {
        let inside = location.inside();
        let scope = scope.inside(inside);
        Protection::of(inside, server, &scope).is_some() || is_within(inside, server, &scope)
    })
}

/// Returns the `rewrite` directives after which nginx looks for a location again.
///
/// Includes those of each `if` in the block.
fn rewrites<'t>(block: &'t [Directive<'t>], is_server: bool) -> Vec<&'t Directive<'t>> {
    let inside = named(block, "if").flat_map(Directive::inside);
    let all = block.iter().chain(inside).filter(|it| it.name == "rewrite");
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
