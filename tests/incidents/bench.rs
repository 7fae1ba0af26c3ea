use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::traffic::Traffic;
use crate::support::{Client, Exchange, Gateway, Origin, Site, drip};

/// Behind the addresses of the servers.
pub const FILE: &str = r#"
max_fails = 1
fail_timeout = "3s"

[zones.per_client]
key = "$arg_key"
rate = "10r/s"

[zones.hasty]
key = "$arg_key"
rate = "10r/s"

[[routes]]
path = "/"
origin = "api"
limits = [{ zone = "per_client", burst = 5, nodelay = true }]

[[routes]]
path = "/deep"
origin = "api"
limits = [{ zone = "per_client", burst = 200 }]

[[routes]]
path = "/hasty"
origin = "api"
limits = [{ zone = "hasty", burst = 200 }]
"#;

/// How a server of the origin answers.
#[derive(Clone, Copy)]
pub enum Server {
    Fine,
    Error,
    Dead,
}

/// A gateway with an origin of two servers, and traffic.
pub struct Bench {
    // Dropped first, so that it ends before what it needs.
    pub traffic: Traffic,
    pub gateway: Gateway,
    servers: [(Origin, Arc<AtomicU8>); 2],
}

impl Bench {
    pub fn start() -> Self {
        let servers = [server(), server()];
        let site = Site::new();
        fs::write(site.file(), text(&site, &servers, FILE)).expect("a file");
        let gateway = Gateway::run(site);
        gateway.wait_until_ready();
        let traffic = Traffic::start(gateway.address());
        Self {
            traffic,
            gateway,
            servers,
        }
    }

    pub fn write(&self, file: &str) {
        let site = &self.gateway.site;
        let text = text(site, &self.servers, file);
        fs::write(site.file(), text).expect("a file");
    }

    pub fn servers(&self, modes: [Server; 2]) {
        for ((_, mode), wanted) in self.servers.iter().zip(modes) {
            mode.store(wanted as u8, Ordering::SeqCst);
        }
    }

    /// Sets or ends the override of the zone `per_client`.
    pub fn change(&self, method: &str, body: &str) {
        let admin = self.gateway.site.admin;
        let mut client = Client::connect(admin);
        let length = body.len();
        client.send(
            format!(
                "{method} /api/zones/per_client/override HTTP/1.1\r\nHost: {admin}\r\n\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        let answer = client.answer();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// What `drip top` writes into a pipe.
    pub fn top(&self) -> String {
        let mut command = drip();
        command.arg("top").arg(self.gateway.site.admin.to_string());
        let output = command.stderr(Stdio::piped()).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    }
}

fn text(site: &Site, servers: &[(Origin, Arc<AtomicU8>); 2], file: &str) -> String {
    let [(a, _), (b, _)] = servers;
    let (a, b) = (a.address, b.address);
    site.text(&format!(
        "\n[origins.api]\nservers = [\"http://{a}\", \"http://{b}\"]{file}"
    ))
}

fn server() -> (Origin, Arc<AtomicU8>) {
    let mode = Arc::<AtomicU8>::default();
    let now = Arc::clone(&mode);
    let origin = Origin::answering(move |exchange| {
        let mode = now.load(Ordering::SeqCst);
        if mode == Server::Dead as u8 {
            return Exchange::close();
        }
        if mode == Server::Error as u8 {
            return exchange.send(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n");
        }
        exchange.reply(b"ok")
    });
    (origin, mode)
}
