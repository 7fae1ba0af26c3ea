//! Programs that upload over HTTP/2, each with a common library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::python::python_with;
use crate::programs::running::{go, java, source};

/// A program. The variants are the libraries.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    Curl,
    Node,
    Java,
    Go,
    Httpx,
}

impl Program {
    /// Uploads `file` `count` times, each on a new connection. Returns the outcomes.
    ///
    /// `expects`: the program waits for an interim response first.
    pub fn upload(self, url: &str, file: &Path, count: usize, expects: bool) -> Vec<String> {
        let mut command = match self {
            Self::Curl => {
                let mut command = Command::new("curl");
                command.args(["--silent", "--insecure", "--http2", "--max-time", "20"]);
                command.args(["--write-out", "%{http_code} %{exitcode}\n"]);
                command.args(["--output", "/dev/null", "--expect100-timeout", "15"]);
                command.arg("--header").arg(if expects {
                    "Expect: 100-continue"
                } else {
                    "Expect:"
                });
                command.arg("--data-binary");
                command.arg(format!("@{}", file.display())).arg(url);
                let once = |_| printed(&mut command);
                return (0..count).flat_map(once).collect();
            }
            Self::Node => {
                let mut command = Command::new("node");
                command.arg(source("streams/upload.js"));
                command
            }
            Self::Java => {
                let mut command = Command::new("java");
                command.arg("-Djdk.internal.httpclient.disableHostnameVerification=true");
                command
                    .arg("-cp")
                    .arg(java("streams/Upload.java"))
                    .arg("Upload");
                command
            }
            Self::Go => Command::new(go("streams/upload.go")),
            Self::Httpx => {
                let mut command = Command::new(python_with(&["httpx[http2]==0.28.1"]));
                command.arg(source("streams/upload.py"));
                command
            }
        };
        command.arg(url).arg(file).arg(count.to_string());
        if expects {
            command.arg("expect");
        }
        printed(&mut command)
    }

    /// Returns what the program prints for a complete response with this status.
    pub fn seen(self, status: u16) -> String {
        match self {
            Self::Curl => format!("{status} 0"),
            Self::Node => format!("{status} closed"),
            Self::Java | Self::Go | Self::Httpx => status.to_string(),
        }
    }
}

/// Returns the lines that a program prints.
pub fn printed(command: &mut Command) -> Vec<String> {
    let output = command.output().expect("the program");
    let text = String::from_utf8(output.stdout).expect("text");
    let complaints = String::from_utf8_lossy(&output.stderr);
    let is_silent = text.is_empty();
    assert!(!is_silent, "{command:?} says nothing, but: {complaints}");
    text.lines().map(str::to_owned).collect()
}

/// Writes a file of this length to upload.
pub fn body(folder: &Path, length: usize) -> PathBuf {
    let file = folder.join("body");
    fs::write(&file, vec![b'x'; length]).expect("a file");
    file
}
