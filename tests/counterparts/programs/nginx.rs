//! An nginx on its own port.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use super::running::{Running, command};
use crate::support::{Origin, free_address};

/// A module that Debian has in a separate package.
const STREAM: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// A real nginx on its own port.
#[derive(Debug)]
pub struct Nginx {
    pub address: SocketAddr,
    _process: Running,
    folder: TempDir,
}

impl Nginx {
    /// Starts nginx in front of `origin`, with `http` and locations given by path and directives.
    pub fn start(origin: &Origin, http: &str, locations: &[(&str, &str)]) -> Self {
        Self::before(origin.address, http, locations)
    }

    /// Starts nginx in front of any listener on `origin`.
    pub fn before(origin: SocketAddr, http: &str, locations: &[(&str, &str)]) -> Self {
        let address = free_address();
        let mut server = String::new();
        for (path, text) in locations {
            writeln!(
                server,
                "location {path} {{ {text} proxy_pass http://origin; }}"
            )
            .expect("a string takes it");
        }
        Self::run(address, &text(origin, address, http, &server))
    }

    /// Starts nginx in front of `origin` with the given server blocks.
    ///
    /// `servers`: returns their text for the address on which they listen.
    pub fn with_servers(origin: &Origin, servers: impl FnOnce(SocketAddr) -> String) -> Self {
        let address = free_address();
        let text = format!("{}\n{}", http_begin(origin.address, ""), servers(address));
        Self::run(address, &format!("{text}\n}}\n"))
    }

    /// Starts nginx with its module `stream` in front of `server`, passing connections unchanged.
    ///
    /// `directives`: further directives.
    pub fn relaying(server: SocketAddr, directives: &str) -> Self {
        let address = free_address();
        let text = format!(
            "
load_module {STREAM};
daemon off;
master_process off;
pid nginx.pid;
error_log error.log info;
events {{ worker_connections 4096; }}
stream {{
    server {{
        listen {address};
        proxy_pass {server};
        {directives}
    }}
}}
"
        );
        Self::run(address, &text)
    }

    fn run(address: SocketAddr, text: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("nginx.conf"), text).expect("a file");
        let mut nginx = command("nginx");
        nginx
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf", "-e", "error.log"]);
        let process = Running::listening(nginx.stderr(Stdio::null()), address);
        Self {
            address,
            _process: process,
            folder,
        }
    }

    /// Returns the path of its configuration file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("nginx.conf")
    }

    pub fn error_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }
}

fn text(origin: SocketAddr, address: SocketAddr, http: &str, server: &str) -> String {
    let begin = http_begin(origin, http);
    format!("{begin}\n    server {{\n        listen {address};\n        {server}\n    }}\n}}\n")
}

/// Returns the file up to the servers.
fn http_begin(origin: SocketAddr, http: &str) -> String {
    format!(
        r#"
daemon off;
master_process off;
pid nginx.pid;
error_log error.log info;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream origin {{ server {origin}; keepalive 64; }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    {http}
"#
    )
}
