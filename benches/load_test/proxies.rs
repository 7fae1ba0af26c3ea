//! Other proxies before the backend, each with one configuration.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::Command;

use tempfile::TempDir;

use crate::support::placement::{Side, free_address};
use crate::support::process::{Running, find};

/// A running proxy. It stops when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    pub address: SocketAddr,
    // Before its folder, which must be there while it stops.
    _running: Running,
    _folder: TempDir,
}

impl Proxy {
    /// Starts `program` with this file, whose text is made from the address to listen on.
    ///
    /// Returns `None` if the program is not installed.
    fn start(
        program: &str,
        file: &str,
        text: impl FnOnce(SocketAddr) -> String,
        arguments: &[&str],
    ) -> io::Result<Option<Self>> {
        let Some(path) = find(program) else {
            return Ok(None);
        };
        let (folder, address) = (TempDir::new()?, free_address());
        fs::write(folder.path().join(file), text(address))?;
        let mut command = Command::new(path);
        command.args(arguments).current_dir(folder.path());
        let log = folder.path().join("log");
        let running = Running::start(command, Side::Anywhere, address, &log)
            .map_err(|error| io::Error::other(format!("{program}: {error}")))?;
        Ok(Some(Self {
            address,
            _running: running,
            _folder: folder,
        }))
    }

    /// nginx with these zones before `server`, and these limits in its only location.
    pub fn nginx(backend: SocketAddr, zones: &str, limits: &str) -> io::Result<Option<Self>> {
        let text = |address| {
            format!(
                r#"
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    limit_req_status 429;
    {zones}
    upstream backend {{ server {backend}; keepalive 256; }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    server {{
        listen {address} backlog=4096;
        location / {{ {limits} proxy_pass http://backend; }}
    }}
}}
"#
            )
        };
        // The log path that nginx was built with may not be writable for a plain user.
        let arguments = ["-p", ".", "-c", "nginx.conf", "-e", "stderr"];
        Self::start("nginx", "nginx.conf", text, &arguments)
    }

    /// haproxy with these settings of its only backend, and of the server in it.
    pub fn haproxy(backend: SocketAddr, settings: &str, server: &str) -> io::Result<Option<Self>> {
        let text = |address| {
            format!(
                r"
global
    maxconn 8000
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 5s
frontend clients
    bind {address}
    default_backend app
backend app
    http-reuse always
    {settings}
    server app {backend} {server}
"
            )
        };
        let arguments = ["-q", "-f", "haproxy.cfg"];
        Self::start("haproxy", "haproxy.cfg", text, &arguments)
    }
}
