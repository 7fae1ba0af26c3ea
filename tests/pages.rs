//! Checks that the pictures, commands and files that the pages name exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of benches/.
fn pages() -> Vec<PathBuf> {
    pages_in("benches")
}

/// The pages of benches/, of docs/ and its examples, and at the root.
fn all_pages() -> Vec<PathBuf> {
    ["benches", "docs", "docs/examples", ""]
        .into_iter()
        .flat_map(pages_in)
        .collect()
}

fn pages_in(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(root().join(folder)).expect("a folder");
    let files = files.map(|file| file.expect("a file").path());
    files
        .filter(|file| file.extension().is_some_and(|end| end == "md"))
        .collect()
}

/// The link targets: the text between `](` and `)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let rests = text.split("](").skip(1);
    rests.filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

#[test]
fn each_picture_and_file_that_a_page_names_is_there() {
    let mut pictures = 0;
    for page in all_pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let local = links(&text).filter(|link| !link.starts_with("http") && !link.starts_with('#'));
        for link in local {
            let file = link.split('#').next().unwrap_or(link);
            let file = page.parent().expect("a folder").join(file);
            assert!(file.is_file(), "{} names {link}", page.display());
            if file.extension().is_some_and(|end| end == "svg") {
                let picture = fs::read_to_string(&file).expect("a picture");
                assert!(picture.starts_with("<svg"), "{} is none", file.display());
                pictures += 1;
            }
        }
    }
    assert!(pictures >= 8, "only {pictures} pictures");
}

#[test]
fn each_picture_there_is_shown_on_a_page() {
    let texts: String = all_pages()
        .into_iter()
        .map(|page| fs::read_to_string(page).expect("a page"))
        .collect();
    for file in fs::read_dir(root().join("benches/plots")).expect("a folder") {
        let name = file.expect("a file").file_name();
        let name = name.to_string_lossy();
        assert!(texts.contains(&format!("plots/{name})")), "{name}");
    }
}

#[test]
fn each_page_names_the_command_that_makes_it_and_no_command_that_there_is_not() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let commands = text
            .split("cargo bench --bench ")
            .skip(1)
            .filter_map(|rest| {
                rest.split(|letter: char| letter != '_' && !letter.is_alphanumeric())
                    .next()
            });
        let mut named = 0;
        for bench in commands {
            let there = format!("[[bench]]\nname = \"{bench}\"");
            assert!(
                manifest.contains(&there),
                "{} names {bench}",
                page.display()
            );
            named += 1;
        }
        assert!(named > 0, "{} names no command", page.display());
    }
}
