//! The inputs of tests/corpus that are messages.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Every input: its name and its bytes. A bare chunked body gets a head.
pub fn all() -> &'static [(String, Vec<u8>)] {
    static ALL: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut inputs = Vec::new();
        for (folder, before) in [
            ("heads", &[][..]),
            ("smuggling", &[]),
            (
                "chunks",
                &[
                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                ],
            ),
            ("answers", &[]),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/corpus")
                .join(folder);
            let files = fs::read_dir(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            for file in files {
                let path = file.expect("a file").path();
                let (name, bytes) = (path.display().to_string(), fs::read(&path).expect("bytes"));
                let heads = before.iter().map(|before| before.as_bytes());
                inputs.extend(
                    heads.map(|head| (format!("{name} behind a head"), [head, &bytes].concat())),
                );
                inputs.push((name, bytes));
            }
        }
        assert!(inputs.len() > 300, "{} are not all", inputs.len());
        inputs.sort();
        inputs
    })
}
