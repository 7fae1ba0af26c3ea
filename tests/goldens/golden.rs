//! Compares a text with a file of this folder, ignoring sentences.

#[path = "sentences.rs"]
mod sentences;

use std::fs;
use std::path::Path;

/// Compares `text` with the golden file `name`, or writes that file.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let path = path.join(name);
    if std::env::var_os("DRIP_UPDATE_GOLDENS").is_some() {
        fs::write(&path, text).expect("a golden file");
        return;
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let (text, golden) = (&*sentences::without(text), sentences::without(&golden));
    if text == golden {
        return;
    }
    let same = golden.lines().zip(text.lines());
    let same = same.take_while(|(old, new)| old == new).count();
    let from = |text: &str| {
        let lines = text.lines().skip(same.saturating_sub(3)).take(8);
        lines.collect::<Vec<_>>().join("\n    ")
    };
    panic!(
        "tests/goldens/{name} differs from line {} on. It has:\n    {}\nnow:\n    {}\n\
         DRIP_UPDATE_GOLDENS=1 writes it anew",
        same + 1,
        from(&golden),
        from(text)
    );
}
