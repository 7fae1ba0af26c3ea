//! Translates `proxy_set_header` and `grpc_set_header` to `request_headers` of a route.

use super::pass::Pass;
use super::probe;
use super::scope::Scope;
use super::variables::of_drip_alone;
use crate::config::{KeyTemplate, toml_string, toml_text};
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// Fields that the origin gets instead of the client's: names, and their values in TOML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Those of the requests that `pass` forwards.
    pub(super) fn read(pass: Pass, scope: &Scope, notes: &mut Notes) -> Self {
        let mut fields = Self::default();
        for directive in scope.all(&pass.directive("set_header")) {
            let set = &directive.name;
            let [name, value] = &directive.args[..] else {
                let what = format!("{set} has a name and a value; it is left out");
                notes.add(directive.place, what);
                continue;
            };
            let name = name.to_ascii_lowercase();
            if is_of_drip(&name, value) {
                continue;
            }
            let Some(value) = text(directive, value, notes) else {
                continue;
            };
            let entry = format!("{} = {value}", toml_string(&name));
            let all = fields.0.iter().map(|(_, known)| known.clone());
            let all: Vec<String> = all.chain([entry.clone()]).collect();
            if probe::request_headers(&all.join(", ")) {
                fields.0.push((name, entry));
            } else {
                left_out(directive, "request_headers cannot have it", notes);
            }
        }
        fields
    }

    /// The value of `request_headers` in TOML; `None` if there is no field.
    pub(super) fn toml(&self) -> Option<String> {
        let entries: Vec<&str> = self.0.iter().map(|(_, entry)| &**entry).collect();
        (!entries.is_empty()).then(|| format!("{{ {} }}", entries.join(", ")))
    }
}

/// Whether drip sends a field with this value anyway, or an origin's `host` is for it.
fn is_of_drip(name: &str, value: &str) -> bool {
    match name {
        "host" | "upgrade" | "connection" => true,
        "x-forwarded-for" => ["$proxy_add_x_forwarded_for", "$remote_addr"].contains(&value),
        "x-forwarded-proto" => value == "$scheme",
        "x-forwarded-host" => ["$host", "$http_host"].contains(&value),
        _ => false,
    }
}

/// The value of a field in TOML; `None` if drip cannot have it.
fn text(directive: &Directive, value: &str, notes: &mut Notes) -> Option<String> {
    if value.is_empty() {
        return Some("false".to_owned());
    }
    let known = value
        .replace("$ssl_client_s_dn", "$ssl_client_subject")
        .replace("${ssl_client_s_dn}", "${ssl_client_subject}");
    let has = |text: &str, name: &str| {
        text.contains(&format!("${name}")) || text.contains(&format!("${{{name}"))
    };
    // In nginx only the file itself could define it.
    let is_other = has(value, "ssl_client_subject");
    let template = KeyTemplate::parse_value(&known).ok();
    let template = template.filter(|it| !is_other && of_drip_alone(it).is_none());
    let Some(template) = template else {
        left_out(directive, "drip does not know its variables", notes);
        return None;
    };
    let template = template.to_string();
    if template.contains("${") {
        left_out(
            directive,
            "a variable cannot end right before a letter there",
            notes,
        );
        return None;
    }
    let shown = format!("{} {}", directive.name, directive.arg(0));
    if has(value, "ssl_client_fingerprint") {
        notes.add(directive.place, format!("{shown}: $ssl_client_fingerprint is SHA-256 in drip, and SHA-1 in nginx; change what the origin compares it with"));
    }
    if has(value, "arg_") || has(value, "cookie_") {
        notes.add(directive.place, format!("{shown}: drip decodes arguments and cookies, and nginx passes them as the client wrote them"));
    }
    Some(toml_text(&template))
}

fn left_out(directive: &Directive, why: &str, notes: &mut Notes) {
    let shown = format!("{} {}", directive.name, directive.arg(0));
    notes.add(directive.place, format!("{shown} is not translated: {why}; drip sets X-Forwarded-For, -Proto and -Host, and Host; request_headers of a route sets others"));
}
