//! What protects a location from some or all clients. drip checks none of it, so it refuses there.

use super::scope::{Scope, named};
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;

/// Modules that ask for a password, a token or another program's consent.
const CHECKS: [&str; 12] = [
    "access_by_lua",
    "access_by_lua_block",
    "access_by_lua_file",
    "auth_basic",
    "auth_digest",
    "auth_gss",
    "auth_jwt",
    "auth_jwt_require",
    "auth_ldap",
    "auth_oidc",
    "auth_pam",
    "auth_request",
];

/// The status of drip where it refuses.
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;

/// Why the requests of a location are refused.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    pub(super) status: u16,
    place: Place,
    by: String,
}

impl Protection {
    /// What protects the requests of a location; `None` if everybody may send them.
    ///
    /// `server` is the block of the server, whose `return` and `if` go before all locations.
    pub(super) fn of(block: &[Directive], server: &[Directive], scope: &Scope) -> Option<Self> {
        Self::by_return(server)
            .or_else(|| Self::by_return(block))
            .or_else(|| {
                let internal = scope.get("internal")?;
                Some(Self::new(NOT_FOUND, internal, "internal"))
            })
            .or_else(|| Self::by_condition(server))
            .or_else(|| Self::by_condition(block))
            .or_else(|| Self::inherited(scope))
    }

    /// What protects a whole server; `None` if some of its requests are for everybody.
    pub(super) fn of_server(server: &[Directive], scope: &Scope) -> Option<Self> {
        Self::of(&[], server, scope)
    }

    /// What protects the methods that a `limit_except` does not name.
    pub(super) fn of_other_methods(block: &[Directive], scope: &Scope) -> Option<Self> {
        Self::inherited(&scope.inside(block))
    }

    /// Another location's protection, which this one cannot have on its own.
    pub(super) fn because(place: Place, by: String) -> Self {
        Self {
            status: FORBIDDEN,
            place,
            by,
        }
    }

    fn new(status: u16, directive: &Directive, by: &str) -> Self {
        Self {
            status,
            place: directive.place,
            by: by.to_owned(),
        }
    }

    /// Protection by directives that inner blocks inherit.
    fn inherited(scope: &Scope) -> Option<Self> {
        let is_on = |directive: &&Directive| directive.args.first().is_none_or(|it| it != "off");
        let mut checks = CHECKS.iter().filter_map(|name| scope.get(name));
        if let Some(check) = checks.find(is_on) {
            return Some(Self::new(FORBIDDEN, check, &check.name));
        }
        let verifies = scope.get("ssl_verify_client").filter(
            |it| matches!(it.args.first(), Some(value) if value != "off" && !value.starts_with("optional")),
        );
        if let Some(verifies) = verifies {
            return Some(Self::new(FORBIDDEN, verifies, "ssl_verify_client"));
        }
        // The first rule that fits a client counts. Without any that does, the client may pass.
        let rules = scope.all_of(&["allow", "deny"]);
        let is_open = |rule: &&Directive| {
            rule.name == "allow" && rule.args.first().is_some_and(|it| it == "all")
        };
        let rules = rules.into_iter().take_while(|rule| !is_open(rule));
        let deny = rules.into_iter().find(|rule| rule.name == "deny");
        deny.map(|deny| Self::new(FORBIDDEN, deny, "deny"))
    }

    fn by_return(block: &[Directive]) -> Option<Self> {
        named(block, "return").find_map(|directive| {
            let status = error_status(directive)?;
            let by = format!("return {}", directive.args.join(" "));
            Some(Self::new(status, directive, &by))
        })
    }

    /// Protection by an `if` that refuses: of no right, or as if there were nothing.
    fn by_condition(block: &[Directive]) -> Option<Self> {
        named(block, "if").find_map(|condition| {
            let inside = condition.block.as_deref().unwrap_or_default();
            let refused = Self::by_return(inside)?;
            let code = named(inside, "return").next()?.args.first()?;
            let is_private = ["401", "403", "404", "444"].contains(&&**code);
            let by = format!("if {}", condition.args.join(" "));
            is_private.then(|| Self::new(refused.status, condition, &by))
        })
    }

    /// Notes what protects the location `shown`, and that it is refused.
    pub(super) fn tell(&self, shown: &str, notes: &mut Notes) {
        let Self { status, place, by } = self;
        notes.add(*place, format!("{by} protects {shown} in nginx; drip does not check that, so it refuses all its requests with {status}"));
    }
}

/// The error with which a `return` answers; `None` if it answers otherwise.
pub(super) fn error_status(directive: &Directive) -> Option<u16> {
    let status = directive.args.first()?.parse().ok()?;
    match status {
        // The connection is closed without a response.
        444 => Some(FORBIDDEN),
        400..=599 => Some(status),
        _ => None,
    }
}
