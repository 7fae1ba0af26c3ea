//! What protects a location from some or all clients. drip checks networks of clients, and refuses
//! where something else protects.

use super::kind::{Kind, kind};
use super::networks::{ClientAddresses, Networks, Unfit};
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

/// The rules about the addresses of clients, of which the first that matches decides.
const RULES: [&str; 2] = ["allow", "deny"];

/// The status of drip where it refuses.
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;

/// Why the requests of a location are refused.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    pub(super) status: u16,
    place: Place,
    by: String,
    /// Whether nothing but `allow` and `deny` protects.
    is_by_networks: bool,
    /// Why drip does not check it.
    why: Option<String>,
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

    /// What protects a location of a server: its own directives, or a `rewrite` that may lead to
    /// a location which is protected. That one is judged by its new path in nginx.
    pub(super) fn of_location(
        block: &[Directive],
        server: &[Directive],
        scope: &Scope,
    ) -> Option<Self> {
        let own = Self::of(block, server, scope);
        let (by_networks, own) = match own {
            Some(own) if own.is_by_networks => (Some(own), None),
            own => (None, own),
        };
        let by_rewrite = || {
            let http = scope.outermost();
            let protected = Protected::of(server, &http.inside(server));
            let mut all = rewrites(server, true);
            all.extend(rewrites(block, false));
            let rewrite = all.into_iter().find(|it| protected.may_take(it))?;
            let by = format!("rewrite {}", rewrite.args.join(" "));
            Some(Self::new(FORBIDDEN, rewrite, &by))
        };
        own.or_else(by_rewrite).or(by_networks)
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
            is_by_networks: false,
            why: None,
        }
    }

    /// The networks of the clients that may come, if nothing else protects; `scope`: the blocks
    /// around the rules. The reason is kept if drip cannot check that.
    pub(super) fn networks(
        &mut self,
        scope: &Scope,
        clients: &ClientAddresses,
        notes: &mut Notes,
    ) -> Option<Networks> {
        if !self.is_by_networks {
            return None;
        }
        match clients.networks(&scope.all_of(&RULES)) {
            Ok((networks, refuses_sockets)) => {
                if refuses_sockets {
                    notes.add(self.place, "clients of a socket file are in no network of allow, so drip refuses them; nginx lets them in here");
                }
                Some(networks)
            }
            Err(Unfit::Nobody) => None,
            Err(Unfit::Because(why)) => {
                self.why = Some(why);
                None
            }
        }
    }

    /// The same for this reason.
    pub(super) fn why(self, why: &str) -> Self {
        Self {
            why: Some(why.to_owned()),
            ..self
        }
    }

    fn new(status: u16, directive: &Directive, by: &str) -> Self {
        Self {
            status,
            place: directive.place,
            by: by.to_owned(),
            is_by_networks: false,
            why: None,
        }
    }

    /// The name of what protects.
    pub(super) fn by(&self) -> &str {
        &self.by
    }

    /// Protection by directives that inner blocks inherit.
    pub(super) fn inherited(scope: &Scope) -> Option<Self> {
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
        let rules = scope.all_of(&RULES);
        let is_open = |rule: &&Directive| {
            rule.name == "allow" && rule.args.first().is_some_and(|it| it == "all")
        };
        let rules = rules.into_iter().take_while(|rule| !is_open(rule));
        let deny = rules.into_iter().find(|rule| rule.name == "deny");
        deny.map(|deny| Self {
            is_by_networks: true,
            ..Self::new(FORBIDDEN, deny, "deny")
        })
    }

    fn by_return(block: &[Directive]) -> Option<Self> {
        named(block, "return").find_map(|directive| {
            let status = error_status(directive)?;
            let by = format!("return {}", directive.args.join(" "));
            Some(Self::new(status, directive, &by))
        })
    }

    /// Protection by an `if` that answers by itself, other than with a redirect to HTTPS.
    fn by_condition(block: &[Directive]) -> Option<Self> {
        named(block, "if").find_map(|condition| {
            let inside = condition.inside();
            let by = format!("if {}", condition.args.join(" "));
            if let Some(refused) = Self::by_return(inside) {
                return Some(Self::new(refused.status, condition, &by));
            }
            let returned = named(inside, "return").next();
            let target = if let Some(returned) = returned {
                let code = returned.arg(0);
                if code.starts_with('2') {
                    return None;
                }
                returned.args.last()
            } else {
                let mut rewrites = named(inside, "rewrite");
                rewrites.find(|it| is_redirect(it))?.args.get(1)
            };
            let target = target.map_or("", String::as_str);
            let is_plain = is_of_address(condition) && is_elsewhere(target);
            (!is_plain).then(|| Self::new(FORBIDDEN, condition, &by))
        })
    }

    /// Notes what protects the location `shown`, and that it is refused.
    pub(super) fn tell(&self, shown: &str, notes: &mut Notes) {
        let Self { status, by, .. } = self;
        let why = match &self.why {
            Some(why) => format!("{why}, so drip"),
            None => "drip does not check that, so it".to_owned(),
        };
        notes.add(
            self.place,
            format!("{by} protects {shown} in nginx; {why} refuses all its requests with {status}"),
        );
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

/// Whether a server protects some of its requests.
pub(super) fn in_server(server: &[Directive], scope: &Scope) -> bool {
    let protected = Protected::of(server, scope);
    protected.has_regex || !protected.paths.is_empty()
}

/// The locations of a server that are protected.
#[derive(Default)]
struct Protected<'t> {
    paths: Vec<&'t str>,
    has_regex: bool,
}

impl<'t> Protected<'t> {
    fn of(server: &'t [Directive], scope: &Scope<'t>) -> Self {
        let mut all = Self::default();
        if Protection::of_server(server, scope).is_some() {
            all.paths.push("/");
        }
        let mut blocks = vec![(server, scope.clone())];
        while let Some((block, scope)) = blocks.pop() {
            for location in named(block, "location") {
                let inside = location.inside();
                let scope = scope.inside(inside);
                let mut excepts = named(inside, "limit_except");
                let is_protected = Protection::of(inside, server, &scope).is_some()
                    || excepts.any(|except| {
                        let inside = except.inside();
                        Protection::of_other_methods(inside, &scope).is_some()
                    });
                match kind(&location.args) {
                    Kind::Path { path, .. } if is_protected => all.paths.push(path),
                    Kind::Path { .. } => {}
                    _ => all.has_regex |= is_protected,
                }
                blocks.push((inside, scope));
            }
        }
        all
    }

    /// Whether the path that a `rewrite` makes may be one of these.
    fn may_take(&self, rewrite: &Directive) -> bool {
        let target = rewrite.arg(1);
        let (fixed, is_open) = match target.split_once('$') {
            Some((fixed, _)) => (fixed, true),
            None => (target.split('?').next().unwrap_or_default(), false),
        };
        let takes = |path: &&str| fixed.starts_with(*path) || (is_open && path.starts_with(fixed));
        self.has_regex || self.paths.iter().any(takes)
    }
}

/// The `rewrite` of a block and of each `if` in it after which nginx looks for a location again.
fn rewrites(block: &[Directive], is_server: bool) -> Vec<&Directive> {
    let inside = named(block, "if").flat_map(Directive::inside);
    let all = block.iter().chain(inside).filter(|it| it.name == "rewrite");
    let stays = |it: &Directive| !is_server && it.args.last().is_some_and(|flag| flag == "break");
    all.filter(|it| !is_redirect(it) && !stays(it)).collect()
}

/// Whether a `rewrite` answers with a redirect.
fn is_redirect(rewrite: &Directive) -> bool {
    let flag = rewrite.arg(2);
    let target = rewrite.arg(1);
    let starts = ["http://", "https://", "$scheme"];
    ["redirect", "permanent"].contains(&flag) || starts.iter().any(|it| target.starts_with(it))
}

/// Whether the condition of an `if` asks only how and under which name the client came.
fn is_of_address(condition: &Directive) -> bool {
    let asked = condition.arg(0);
    let asked = asked.trim_start_matches('(').trim_end_matches(')');
    let known = [
        "$host",
        "$http_host",
        "$http_x_forwarded_proto",
        "$https",
        "$scheme",
        "$server_port",
    ];
    known.contains(&asked)
}

/// Whether a redirect goes to HTTPS, or to another name.
fn is_elsewhere(target: &str) -> bool {
    target.starts_with("https://") || target.starts_with("$scheme://")
}
