//! An nginx that is killed and restarted.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use tempfile::TempDir;

use crate::programs::running::{Running, command};
use crate::support::{free_address, whole_lines};

/// A real nginx that answers everything itself, and can be killed and restarted.
#[derive(Debug)]
pub struct KilledServer {
    pub address: SocketAddr,
    process: Option<Running>,
    folder: TempDir,
}

impl KilledServer {
    pub fn start() -> Self {
        let (folder, address) = (TempDir::new().expect("a folder"), free_address());
        let text = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n log_format stamps '$msec $request_uri';\n access_log stamps.log stamps;\n\
             client_body_temp_path body;\n proxy_temp_path proxy;\n fastcgi_temp_path fastcgi;\n\
             uwsgi_temp_path uwsgi;\n scgi_temp_path scgi;\n\
             server {{ listen {address} backlog=1024; location / {{ return 200 \"ok\"; }} }}\n}}\n"
        );
        fs::write(folder.path().join("nginx.conf"), text).expect("a file");
        let mut server = Self {
            address,
            folder,
            process: None,
        };
        server.start_again();
        server
    }

    /// Kills it. The kernel closes its sockets.
    pub fn kill(&mut self) {
        self.process = None;
    }

    pub fn start_again(&mut self) {
        let mut nginx = command("nginx");
        nginx
            .arg("-p")
            .arg(self.folder.path())
            .args(["-c", "nginx.conf", "-e", "error.log"]);
        self.process = Some(Running::listening(
            nginx.stderr(Stdio::null()),
            self.address,
        ));
    }

    /// Returns the requests whose target contains `part`, each with its stamp in milliseconds.
    pub fn stamps(&self, part: &str) -> Vec<(u64, String)> {
        let log = whole_lines(self.folder.path().join("stamps.log"));
        let stamp = |line: &str| {
            let (seconds, target) = line.split_once(' ')?;
            let millis = seconds.replace('.', "").parse().ok()?;
            Some((millis, target.to_owned()))
        };
        let stamps = log.lines().filter_map(stamp);
        stamps.filter(|(_, target)| target.contains(part)).collect()
    }
}
