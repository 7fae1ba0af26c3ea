//! The inputs of tests/corpus that are messages, and ways to cut bytes into pieces.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::support::night::some_of;
use crate::support::rng::Rng;

/// Returns every input: its name and its bytes. A bare chunked body gets a head.
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

fn cut(bytes: &[u8], size: usize) -> Vec<Vec<u8>> {
    bytes.chunks(size.max(1)).map(<[u8]>::to_vec).collect()
}

/// Returns ways to cut bytes: one piece, single bytes, and two pieces.
///
/// Two pieces are cut at every fourth position, by night at every position.
pub fn each_cut(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let in_two = |at: usize| vec![bytes[..at].to_vec(), bytes[at..].to_vec()];
    let mut all = vec![cut(bytes, bytes.len()), cut(bytes, 1)];
    all.extend(some_of(1..bytes.len().min(300), 4).map(in_two));
    all
}

/// Cuts bytes into pieces of any length.
pub fn any_cut(rng: &mut Rng, bytes: Vec<u8>) -> Vec<Vec<u8>> {
    match rng.within(0, 10) {
        0..4 => vec![bytes],
        4 if bytes.len() < 2000 => cut(&bytes, 1),
        _ => {
            let longest = rng.pick(&[4, 20, 100, 1000]).max(bytes.len() as u64 / 100);
            let (mut pieces, mut at) = (Vec::new(), 0);
            while at < bytes.len() {
                let size = usize::try_from(rng.within(1, longest)).expect("few");
                let end = bytes.len().min(at + size);
                pieces.push(bytes[at..end].to_vec());
                at = end;
            }
            pieces
        }
    }
}
