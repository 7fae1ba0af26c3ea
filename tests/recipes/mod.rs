//! The recipes of CONTRIBUTING.md name files that exist, and what stands in them.

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The items of all recipes: the bullets below the headings that begin with "A new".
fn items() -> Vec<String> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("a text");
    let recipes = text
        .split("\n### ")
        .filter(|part| part.starts_with("A new "));
    let items = recipes.flat_map(|part| {
        let part = part.split("\n## ").next().unwrap_or_default();
        let bullets = part.split("\n- ").skip(1);
        bullets.map(|item| item.split("\n\n").next().unwrap_or_default().to_owned())
    });
    items.collect()
}

/// The words in backticks.
fn quoted(item: &str) -> impl Iterator<Item = &str> {
    item.split('`').skip(1).step_by(2)
}

/// Whether a quoted word is a file or a folder of the repository.
fn is_path(word: &str) -> bool {
    let first = word.split('/').next().unwrap_or_default();
    let is_folder = ["src", "tests", "docs", "benches", "grafana", "packaging"].contains(&first);
    word.contains('/') && is_folder || is_a(word, "md")
}

/// Whether the file has this ending.
fn is_a(file: &str, ending: &str) -> bool {
    Path::new(file).extension().is_some_and(|it| it == ending)
}

#[test]
fn the_files_of_each_recipe_exist_and_have_what_it_names() {
    let items = items();
    assert!(items.len() > 20, "only {} items", items.len());
    let mut wrong = Vec::new();
    for item in &items {
        let mut within: Option<&str> = None;
        for word in quoted(item) {
            if is_path(word) {
                within = Some(word);
                if !root().join(word).exists() {
                    wrong.push(format!("{word} does not exist: {item}"));
                    within = None;
                }
                continue;
            }
            // A name of the code stands behind the file that it is in.
            let is_name = word.chars().all(|c| c.is_alphanumeric() || c == '_');
            if let Some(path) = within.filter(|path| is_a(path, "rs") && is_name)
                && !fs::read_to_string(root().join(path))
                    .expect("a text")
                    .contains(word)
            {
                wrong.push(format!("{path} has no {word}: {item}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
