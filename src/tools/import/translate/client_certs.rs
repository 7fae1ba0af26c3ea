//! Translates the verification of clients' certificates.
//!
//! In nginx each server has its own rule, and in drip each address. So the servers of an address
//! must agree. If they do, their directives are taken out of the tree; otherwise they stay, and
//! the servers that need certificates are refused.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::listen::{self, Listen};
use super::page::{Section, absolute};
use super::scope::named;
use crate::config::toml_text;
use crate::tools::import::Files;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// All directives about certificates of clients.
const ALL: [&str; 5] = [
    "ssl_verify_client",
    "ssl_client_certificate",
    "ssl_trusted_certificate",
    "ssl_crl",
    "ssl_verify_depth",
];

/// What is translated.
#[derive(Default)]
pub(super) struct ClientCerts {
    /// The rule of each address that has one.
    at: HashMap<String, Rule>,
    /// Whether all addresses with TLS have the same rule.
    is_common: bool,
    /// The indices of the servers whose clients need a certificate.
    pub(super) required: HashSet<usize>,
}

/// How clients of an address show who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    is_required: bool,
    ca: String,
    crl: Option<String>,
}

impl Rule {
    /// Its fields in TOML.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let auth = if self.is_required {
            "required"
        } else {
            "optional"
        };
        let mut fields = vec![
            ("client_ca", toml_text(&self.ca)),
            ("client_auth", toml_text(auth)),
        ];
        fields.extend(self.crl.as_ref().map(|crl| ("client_crl", toml_text(crl))));
        fields
    }
}

impl ClientCerts {
    /// Takes what is translated out of the tree.
    pub(super) fn take(
        http: &mut Vec<Directive>,
        files: &dyn Files,
        folder: &Path,
        notes: &mut Notes,
    ) -> Self {
        let usual: Vec<Directive> = http.extract_if(.., |it| is_of_clients(it)).collect();
        let mut servers: Vec<Read> = Vec::new();
        for server in named(http, "server") {
            servers.push(Read::of(server, &usual));
        }
        let mut taken = Self::default();
        let mut is_fit = Vec::new();
        let is_certified = is_certified(http, files, folder);
        for server in &servers {
            is_fit.push(is_certified && server.is_fit(&servers, files, folder, notes));
        }
        for (index, server) in servers.iter().enumerate() {
            if let Some(rule) = server.rule(folder).filter(|_| is_fit[index]) {
                if rule.is_required {
                    taken.required.insert(index);
                }
                server.note(notes);
                for address in &server.addresses {
                    taken.at.insert(address.clone(), rule.clone());
                }
            }
        }
        let rules = servers.iter().zip(&is_fit);
        let rules = rules.filter(|(server, _)| !server.addresses.is_empty());
        let mut rules = rules.map(|(server, is_fit)| server.rule(folder).filter(|_| *is_fit));
        let first = rules.next().flatten();
        taken.is_common = first.is_some() && rules.all(|rule| rule == first);
        // nginx asks for no certificate where there is no TLS.
        let secure: HashSet<&String> = servers.iter().flat_map(|it| &it.addresses).collect();
        let is_plain = |it: &Read| !it.listens.iter().any(|address| secure.contains(address));
        let is_plain: Vec<bool> = servers.iter().map(is_plain).collect();
        let mut each = is_fit.iter().zip(&is_plain);
        for server in http.iter_mut().filter(|it| it.name == "server") {
            let (Some(block), Some((is_fit, is_plain))) = (&mut server.block, each.next()) else {
                continue;
            };
            if *is_fit {
                block.retain(|it| !is_of_clients(it));
            } else if !is_plain {
                // What all servers inherit is that of this one.
                let missing = usual
                    .iter()
                    .filter(|it| named(block, &it.name).next().is_none());
                let missing: Vec<Directive> = missing.map(copy).collect();
                block.extend(missing);
            }
        }
        taken
    }

    /// The entry of an address in `listen`, in TOML.
    pub(super) fn entry(&self, address: &str) -> String {
        let text = toml_text(address);
        match self.at.get(address).filter(|_| !self.is_common) {
            None => text,
            Some(rule) => {
                let fields = rule.fields().into_iter();
                let fields = fields.map(|(name, value)| format!(", {name} = {value}"));
                let fields = fields.collect::<Vec<_>>().concat();
                format!("{{ address = {text}{fields} }}")
            }
        }
    }

    /// Writes the fields of `[server.tls]`.
    pub(super) fn write(&self, section: &mut Section) {
        if let Some(rule) = self.at.values().next().filter(|_| self.is_common) {
            section.fields.extend(rule.fields());
        }
    }
}

/// What a server says of certificates of clients.
struct Read<'t> {
    listens: Vec<String>,
    /// Those with TLS.
    addresses: Vec<String>,
    directives: HashMap<&'t str, &'t Directive>,
}

impl<'t> Read<'t> {
    fn of(server: &'t Directive, usual: &'t [Directive]) -> Self {
        // They are read again, with notes, once this is done.
        let mut unused = Notes::default();
        let listens = named(server.inside(), "listen");
        let listens = listens.filter_map(|it| Listen::read(it, &mut unused));
        let mut directives = HashMap::new();
        for directive in server
            .inside()
            .iter()
            .chain(usual)
            .filter(|it| is_of_clients(it))
        {
            directives.entry(&*directive.name).or_insert(directive);
        }
        let listens: Vec<Listen> = listens.collect();
        let secure = listens.iter().filter(|it| it.tls);
        Self {
            addresses: secure.map(|it| it.address.clone()).collect(),
            listens: listens.into_iter().map(|it| it.address).collect(),
            directives,
        }
    }

    fn get(&self, name: &str) -> Option<&'t str> {
        let value = self.directives.get(name)?.arg(0);
        (!value.is_empty()).then_some(value)
    }

    /// The rule of its clients; `None` if they show no certificate, or one that nobody verifies.
    fn rule(&self, folder: &Path) -> Option<Rule> {
        let is_required = match self.get("ssl_verify_client")? {
            "on" => true,
            "optional" => false,
            _ => return None,
        };
        Some(Rule {
            is_required,
            ca: absolute(folder, self.get("ssl_client_certificate")?),
            crl: self.get("ssl_crl").map(|crl| absolute(folder, crl)),
        })
    }

    /// Whether the addresses of a server can have its rule. A note says why if they cannot.
    fn is_fit(&self, all: &[Self], files: &dyn Files, folder: &Path, notes: &mut Notes) -> bool {
        let Some(verifies) = self.directives.get("ssl_verify_client") else {
            return false;
        };
        let word = verifies.arg(0);
        if self.addresses.is_empty() || word == "off" {
            return false;
        }
        let rule = self.rule(folder);
        let why = if word == "optional_no_ca" {
            "drip takes no certificate of an unknown authority".to_owned()
        } else if let Some(rule) = &rule {
            let meets = |other: &&Self| {
                let mut both = other.addresses.iter();
                both.any(|it| {
                    self.addresses
                        .iter()
                        .any(|own| it == own || listen::meet(it, own))
                })
            };
            let mut others = all.iter().filter(meets);
            if others.any(|other| other.rule(folder).as_ref() != Some(rule)) {
                "drip has one rule for an address, and another server there has another".to_owned()
            } else {
                let crl = rule.crl.as_ref().map(Path::new);
                match files.client_trust(Path::new(&rule.ca), crl) {
                    Ok(()) => return true,
                    Err(why) => format!(
                        "its files cannot be used here: {why}; [server.tls] would have client_ca = {}",
                        toml_text(&rule.ca)
                    ),
                }
            }
        } else {
            "there is no ssl_client_certificate".to_owned()
        };
        notes.add(verifies.place, format!("ssl_verify_client {word}: {why}"));
        false
    }

    /// Notes what differs.
    fn note(&self, notes: &mut Notes) {
        let Some(verifies) = self.directives.get("ssl_verify_client") else {
            return;
        };
        let depth = self.get("ssl_verify_depth").unwrap_or("1");
        notes.add(verifies.place, format!("ssl_verify_client: drip ends the handshake of a client whose certificate is missing or invalid, where nginx answers 400, and takes chains of any length, nginx of {depth} between"));
        if let Some(trusted) = self.directives.get("ssl_trusted_certificate") {
            notes.add(trusted.place, "ssl_trusted_certificate: drip takes only certificates of the authorities in ssl_client_certificate; add these to that file if they sign certificates of clients");
        }
    }
}

/// Whether drip can speak TLS at all: with a certificate that can be loaded.
fn is_certified(http: &[Directive], files: &dyn Files, folder: &Path) -> bool {
    let servers = named(http, "server").map(Directive::inside);
    std::iter::once(http).chain(servers).any(|block| {
        let pairs = named(block, "ssl_certificate").zip(named(block, "ssl_certificate_key"));
        pairs.into_iter().any(|(cert, key)| {
            let (cert, key) = (absolute(folder, cert.arg(0)), absolute(folder, key.arg(0)));
            files.pair(Path::new(&cert), Path::new(&key)).is_ok()
        })
    })
}

fn is_of_clients(directive: &Directive) -> bool {
    ALL.contains(&&*directive.name)
}

/// A directive without a block.
fn copy(directive: &Directive) -> Directive {
    Directive {
        name: directive.name.clone(),
        args: directive.args.clone(),
        block: None,
        place: directive.place,
    }
}
