//! Tests of importing Ingress objects with annotations of ingress-nginx.

use std::fs;
use std::path::{Path, PathBuf};

use super::{check_golden, drip, outcome_of, written};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/ingress")
}

#[test]
fn a_whole_manifest_comes_out_as_it_should() {
    let (code, settings, notes) = outcome_of(&drip(&corpus(), &["import", "shop.yaml"]));
    assert_eq!(code, Some(0), "{notes:#?}");
    check_golden("ingress-shop.toml", &settings);
    assert_eq!(notes.last().unwrap(), "9 notes to check");
}

/// A manifest is recognized by its name or its beginning.
#[test]
fn a_manifest_is_known_by_its_name_or_its_beginning() {
    let text = fs::read_to_string(corpus().join("shop.yaml")).unwrap();
    let json = fs::read_to_string(corpus().join("list.json")).unwrap();
    let folder = written(&[("manifest", &text), ("a.JSON", &json), ("empty.yml", "")]);
    for name in ["manifest", "a.JSON"] {
        let (code, settings, _) = outcome_of(&drip(folder.path(), &["import", name]));
        assert_eq!(code, Some(0), "{name}");
        assert!(settings.contains("svc.cluster.local"), "{name}: {settings}");
    }
    let (code, settings, notes) = outcome_of(&drip(folder.path(), &["import", "empty.yml"]));
    assert_eq!((code, &*settings), (Some(1), ""));
    let none = "empty.yml: found no Ingress with a path to translate";
    assert_eq!(notes, [none]);
}

/// The page shows a manifest, the resulting settings, and the notes.
#[test]
fn the_page_shows_what_happens() {
    let page = "docs/coming-from/ingress-nginx.md";
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).expect("a block");
        rest.split_once("```").unwrap().0
    };
    let folder = written(&[("ingress.yaml", block("yaml"))]);
    let output = drip(folder.path(), &["import", "ingress.yaml"]);
    let (code, settings, notes) = outcome_of(&output);
    assert_eq!((code, &*settings), (Some(0), block("toml")), "{notes:#?}");
    let shown: Vec<_> = block("text").lines().collect();
    assert_eq!(notes, shown);
}
