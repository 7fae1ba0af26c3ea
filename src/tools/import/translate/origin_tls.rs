//! Translates how nginx speaks TLS to the servers of an origin.

use std::path::Path;

use super::page::{Section, absolute};
use super::pass::Pass;
use super::probe;
use super::scope::Scope;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// Writes the fields of an origin with servers that speak TLS.
pub(super) fn write(
    section: &mut Section,
    pass: Pass,
    scope: &Scope,
    folder: &Path,
    notes: &mut Notes,
) {
    let get = |name: &str| scope.get(&pass.directive(name));
    let is_on = |name: &str| get(name).is_some_and(|it| it.arg(0) == "on");
    let trusted = get("ssl_trusted_certificate");
    if !is_on("ssl_verify") {
        pass.note(
            "drip verifies the certificate of the origin; nginx does so only if it is told to",
            notes,
        );
    } else if let Some(file) = trusted.and_then(|it| fixed(it, notes)) {
        section.text("ca", &absolute(folder, file));
    }
    let pair = [get("ssl_certificate"), get("ssl_certificate_key")];
    if let [Some(cert), Some(key)] = pair {
        if let Some((cert, key)) = fixed(cert, notes).zip(fixed(key, notes)) {
            section.text("client_cert", &absolute(folder, cert));
            section.text("client_key", &absolute(folder, key));
        }
    } else if let Some(alone) = pair.into_iter().flatten().next() {
        let what = format!("{} is left out: a certificate needs its key", alone.name);
        notes.add(alone.place, what);
    }
    let Some(directive) = get("ssl_name") else {
        return;
    };
    let Some(name) = fixed(directive, notes) else {
        return;
    };
    if probe::host(&name.to_ascii_lowercase()) && !name.contains('*') {
        section.text("server_name", name);
        if !is_on("ssl_server_name") {
            let what = format!(
                "{}: drip also asks for this name (SNI), and nginx does so only with {} on",
                directive.name,
                pass.directive("ssl_server_name")
            );
            notes.add(directive.place, what);
        }
    } else {
        let what = format!(
            "{}: \"{name}\" is no name of a host; it is left out",
            directive.name
        );
        notes.add(directive.place, what);
    }
}

/// The value of a directive; `None`, with a note, if it has variables or is empty.
fn fixed<'t>(directive: &'t Directive, notes: &mut Notes) -> Option<&'t str> {
    let value = directive.arg(0);
    if value.is_empty() || value.contains('$') {
        let what = format!(
            "{}: drip has one value for all requests, without variables; it is left out",
            directive.name
        );
        notes.add(directive.place, what);
        return None;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::translate;
    use crate::tools::import::Files;
    use crate::tools::import::tree::Reader;

    use super::*;

    /// There are no files.
    struct Nowhere;

    impl Files for Nowhere {
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn list(&self, _: &Path) -> Vec<String> {
            Vec::new()
        }

        fn pair(&self, _: &Path, _: &Path) -> Result<(), String> {
            Err("no files".to_owned())
        }

        fn page(&self, _: &Path) -> Result<(), String> {
            Err("no files".to_owned())
        }

        fn client_trust(&self, _: &Path, _: Option<&Path>) -> Result<(), String> {
            Err("no files".to_owned())
        }
    }

    /// The origin of a location with these directives, and the notes.
    fn origin(directives: &str) -> (String, Vec<String>) {
        let text = format!("server {{ location / {{ {directives} }} }}");
        let main = Path::new("/etc/nginx/nginx.conf");
        let mut reader = Reader::new(&Nowhere, main);
        let tree = reader.parse(main, text.as_bytes());
        let (page, notes) = translate(tree, reader.notes, &Nowhere, main);
        let page = page.unwrap();
        let (_, origin) = page.split_once("[origins.app-test]\n").unwrap();
        let (origin, _) = origin.split_once("\n\n").unwrap();
        (origin.to_owned(), notes.all())
    }

    #[test]
    fn the_files_and_the_name_of_nginx_are_those_of_the_origin() {
        let (found, notes) = origin(
            "proxy_pass https://app.test; proxy_ssl_verify on; proxy_ssl_server_name on;
             proxy_ssl_trusted_certificate ca.pem; proxy_ssl_name backend.test;
             proxy_ssl_certificate /etc/ssl/drip.pem; proxy_ssl_certificate_key drip.key;",
        );
        let expected = "servers = [\"https://app.test\"]\n\
            ca = \"/etc/nginx/ca.pem\"\n\
            client_cert = \"/etc/ssl/drip.pem\"\n\
            client_key = \"/etc/nginx/drip.key\"\n\
            server_name = \"backend.test\"\n\
            host = \"origin\"";
        assert_eq!((&*found, notes.len()), (expected, 0), "{notes:?}");
        // gRPC has its own directives, and those of the other module do not count.
        let (found, notes) = origin(
            "grpc_pass grpcs://app.test; grpc_ssl_verify on; grpc_ssl_trusted_certificate a.pem;
             proxy_ssl_name other.test;",
        );
        assert!(found.contains("ca = \"/etc/nginx/a.pem\""), "{found}");
        assert!(!found.contains("server_name"), "{found} {notes:?}");
    }

    #[test]
    fn what_an_origin_cannot_have_is_told() {
        for (directives, left_out, why) in [
            (
                "proxy_ssl_trusted_certificate ca.pem;",
                "ca",
                "drip verifies the certificate",
            ),
            (
                "proxy_ssl_certificate a.pem;",
                "client_cert",
                "a certificate needs its key",
            ),
            (
                "proxy_ssl_certificate $cert; proxy_ssl_certificate_key a.key;",
                "client_cert",
                "without variables",
            ),
            ("proxy_ssl_name $host;", "server_name", "without variables"),
            ("proxy_ssl_name *.a;", "server_name", "is no name of a host"),
        ] {
            let (found, notes) = origin(&format!("proxy_pass https://app.test; {directives}"));
            assert!(!found.contains(&format!("{left_out} =")), "{found}");
            assert!(notes.iter().any(|it| it.contains(why)), "{notes:?}");
        }
        let (found, notes) = origin("proxy_pass https://app.test; proxy_ssl_name b.test;");
        assert!(found.contains("server_name = \"b.test\""), "{found}");
        assert!(
            notes
                .iter()
                .any(|it| it.contains("proxy_ssl_server_name on")),
            "{notes:?}"
        );
        let (found, _) = origin("proxy_pass http://app.test; proxy_ssl_name b.test;");
        assert!(!found.contains("server_name"), "{found}");
    }
}
