//! Translates how nginx speaks TLS to the servers of an origin.

use std::path::Path;

use super::page::{Section, absolute};
use super::pass::Pass;
use super::probe;
use super::scope::Scope;
use crate::config::toml_text;
use crate::tools::import::Files;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// Writes the fields of an origin with servers that speak TLS.
///
/// `group`: the name of the `upstream` that they are of.
pub(super) fn write(
    section: &mut Section,
    pass: Pass,
    group: Option<&str>,
    scope: &Scope,
    (files, folder): (&dyn Files, &Path),
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
    } else if let Some((at, file)) = trusted.and_then(|it| Some((it, fixed(it, notes)?))) {
        let file = absolute(folder, file);
        match files.client_trust(Path::new(&file), None) {
            Ok(()) => section.text("ca", &file),
            Err(why) => unusable(at, &why, &[("ca", &file)], notes),
        }
    }
    let pair = [get("ssl_certificate"), get("ssl_certificate_key")];
    if let [Some(cert), Some(key)] = pair {
        if let Some((file, key)) = fixed(cert, notes).zip(fixed(key, notes)) {
            let (file, key) = (absolute(folder, file), absolute(folder, key));
            match files.pair(Path::new(&file), Path::new(&key)) {
                Ok(()) => {
                    section.text("client_cert", &file);
                    section.text("client_key", &key);
                }
                Err(why) => {
                    let fields = [("client_cert", &*file), ("client_key", &*key)];
                    unusable(cert, &why, &fields, notes);
                }
            }
        }
    } else if let Some(alone) = pair.into_iter().flatten().next() {
        let what = format!("{} is left out: a certificate needs its key", alone.name);
        notes.add(alone.place, what);
    }
    let Some(directive) = get("ssl_name") else {
        // Certificates are for the name in proxy_pass by default, and here for that of the server.
        if let Some(group) = group.filter(|group| is_on("ssl_verify") && probe::host(group)) {
            section.text("server_name", group);
        }
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

/// Says what to add once files that cannot be used here can be.
///
/// Without them fewer servers are trusted, and none more.
fn unusable(at: &Directive, why: &str, fields: &[(&str, &str)], notes: &mut Notes) {
    let fields = fields
        .iter()
        .map(|(name, file)| format!("{name} = {}", toml_text(file)));
    let what = format!(
        "{}: its file cannot be used here: {why}; where it can, add {} to the origin",
        at.name,
        fields.collect::<Vec<_>>().join(" and ")
    );
    notes.add(at.place, what);
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
    use crate::tools::import::tree::Reader;

    use super::*;

    /// Files that can be used, but those whose name begins with `no`.
    struct Named;

    fn usable(file: &Path) -> Result<(), String> {
        let name = file.file_name().and_then(|it| it.to_str());
        match name {
            Some(name) if !name.starts_with("no") => Ok(()),
            _ => Err("no such file".to_owned()),
        }
    }

    impl Files for Named {
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn list(&self, _: &Path) -> Vec<String> {
            Vec::new()
        }

        fn pair(&self, cert: &Path, key: &Path) -> Result<(), String> {
            usable(cert).and_then(|()| usable(key))
        }

        fn page(&self, _: &Path) -> Result<(), String> {
            Err("no files".to_owned())
        }

        fn client_trust(&self, ca: &Path, _: Option<&Path>) -> Result<(), String> {
            usable(ca)
        }
    }

    /// The origin of a location with these directives, and the notes.
    fn origin(directives: &str) -> (String, Vec<String>) {
        let text = format!(
            "upstream app.group {{ server 127.0.0.1:1; }} server {{ location / {{ {directives} }} }}"
        );
        let main = Path::new("/etc/nginx/nginx.conf");
        let mut reader = Reader::new(&Named, main);
        let tree = reader.parse(main, text.as_bytes());
        let (page, notes) = translate(tree, reader.notes, &Named, main);
        let page = page.unwrap();
        let (_, origin) = page.split_once("[origins.app-").unwrap();
        let (_, origin) = origin.split_once("]\n").unwrap();
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
        let verify = "proxy_ssl_verify on; proxy_ssl_server_name on;";
        for (directives, left_out, why) in [
            (
                "proxy_ssl_trusted_certificate none.pem;",
                "ca",
                "where it can, add ca = \"/etc/nginx/none.pem\" to the origin",
            ),
            (
                "proxy_ssl_certificate a.pem; proxy_ssl_certificate_key no.key;",
                "client_cert",
                "add client_cert = \"/etc/nginx/a.pem\" and client_key = \"/etc/nginx/no.key\"",
            ),
        ] {
            let text = format!("proxy_pass https://app.test; {verify} {directives}");
            let (found, notes) = origin(&text);
            assert!(!found.contains(&format!("{left_out} =")), "{found}");
            assert!(notes.iter().any(|it| it.contains(why)), "{notes:?}");
        }
        // The name of a group is that of its certificates, unless another one is given.
        for (more, expected) in [("", "app.group"), ("proxy_ssl_name a.test;", "a.test")] {
            let (found, _) = origin(&format!("proxy_pass https://app.group; {verify} {more}"));
            assert!(
                found.contains(&format!("server_name = \"{expected}\"")),
                "{found}"
            );
        }
        let (found, _) = origin("proxy_pass https://app.group;");
        assert!(!found.contains("server_name"), "{found}");
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
