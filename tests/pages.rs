//! Checks that pictures, commands, files, metrics and names in the pages exist.
//!
//! Also checks names of types.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files_below;
use crate::support::page::{pages_of, root};

fn read(file: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(file)).expect("a file")
}

fn is_a(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|it| it == ending)
}

fn pages_in(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(root().join(folder)).expect("a folder");
    let files = files.map(|file| file.expect("a file").path());
    files.filter(|file| is_a(file, "md")).collect()
}

/// Returns the pages of benches/, of grafana/, at the root, and in docs/ with its folders.
fn all_pages() -> Vec<PathBuf> {
    let mut pages = files_below(&root().join("docs"));
    pages.retain(|file| is_a(file, "md"));
    pages.extend(["benches", "grafana", ""].into_iter().flat_map(pages_in));
    pages
}

/// Returns the link targets: the text between `](` and `)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let rests = text.split("](").skip(1);
    rests.filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

#[test]
fn each_picture_and_file_that_a_page_names_is_there_and_each_picture_is_shown() {
    let mut shown = String::new();
    for page in all_pages() {
        let text = read(&page);
        let local = links(&text).filter(|link| !link.starts_with("http") && !link.starts_with('#'));
        for link in local {
            let file = link.split('#').next().unwrap_or(link);
            let file = page.parent().expect("a folder").join(file);
            assert!(file.exists(), "{} names {link}", page.display());
            if is_a(&file, "svg") {
                assert!(read(&file).starts_with("<svg"), "{}", file.display());
                shown += link;
            }
        }
    }
    let plots = fs::read_dir(root().join("benches/plots")).expect("a folder");
    for file in plots {
        let name = file.expect("a file").file_name();
        assert!(shown.contains(&*name.to_string_lossy()), "{name:?}");
    }
}

/// Returns the anchors of the headings of a page, as a code host makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title == line || !title.starts_with(' ') {
            continue;
        }
        let is_kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
        let anchor: String = title.trim().chars().filter(is_kept).collect();
        let anchor = anchor.to_lowercase().replace(' ', "-");
        let count = (1..).map(|count| format!("{anchor}-{count}"));
        let mut names = std::iter::once(anchor.clone()).chain(count);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

#[test]
fn each_anchor_of_a_link_is_a_heading() {
    let mut checked = 0;
    for page in all_pages() {
        let text = read(&page);
        for link in links(&text).filter(|link| !link.starts_with("http")) {
            let Some((file, anchor)) = link.split_once('#') else {
                continue;
            };
            let target = match file {
                "" => page.clone(),
                file => page.parent().expect("a folder").join(file),
            };
            let is_heading = anchors(&read(&target)).contains(anchor);
            assert!(is_heading, "{} names {link}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} links");
}

/// Folders of the book, below docs/.
const CHAPTERS: &str = "start recipes reference operate understand coming-from";

/// Most words of a page of the book.
const MAX_WORDS: usize = 2500;

#[test]
fn each_page_of_the_book_is_short_and_in_its_table_of_contents() {
    let docs = root().join("docs");
    let contents = read("docs/SUMMARY.md");
    let folders = CHAPTERS.split(' ').map(|chapter| docs.join(chapter));
    let folders = folders.filter(|folder| folder.is_dir());
    let files = folders.flat_map(|folder| files_below(&folder));
    for page in files.filter(|file| is_a(file, "md")) {
        let name = page.strip_prefix(&docs).expect("a page of docs").display();
        let words = read(&page).split_whitespace().count();
        assert!(words <= MAX_WORDS, "{name} has {words} words");
        let is_listed = contents.contains(&format!("]({name})"));
        assert!(is_listed, "{name} is not in SUMMARY.md");
    }
}

#[test]
fn each_page_names_the_command_that_makes_it_and_no_command_that_there_is_not() {
    let manifest = read("Cargo.toml");
    for page in pages_in("benches") {
        let text = read(&page);
        let commands = text.split("cargo bench --bench ").skip(1);
        let mut named = 0;
        for rest in commands {
            let bench = rest.split(|letter: char| letter != '_' && !letter.is_alphanumeric());
            let bench = bench.take(1).collect::<String>();
            let there = format!("[[bench]]\nname = \"{bench}\"");
            assert!(manifest.contains(&there), "{}: {bench}", page.display());
            named += 1;
        }
        assert!(named > 0, "{} names no command", page.display());
    }
}

/// The tests of tests/checklist have the numbers of the page, and each number has a test.
#[test]
fn the_lines_of_the_checklist_are_those_that_are_tested() {
    let list = read("docs/proxy-checklist.md");
    let lines: BTreeSet<u32> = list
        .lines()
        .filter_map(|line| line.split_once(". ")?.0.parse().ok())
        .collect();
    let mut tested = BTreeSet::new();
    for file in files_below(&root().join("tests/checklist")) {
        let code = read(file);
        let names = code.split("fn line_").skip(1);
        tested.extend(names.filter_map(|name| name.split('_').next()?.parse::<u32>().ok()));
    }
    assert_eq!(lines, tested);
}

#[test]
fn each_metric_in_the_code_is_among_the_operations() {
    let operations = pages_of("operate");
    let families = read("src/gateway/status/exposition/families.txt");
    let names = families.lines().filter_map(|line| line.split(' ').next());
    let mut received = 0;
    for name in names.filter(|name| name.starts_with("drip_")) {
        assert!(operations.contains(&format!("`{name}`")), "{name}");
        received += 1;
    }
    assert!(received > 30, "only {received} metrics");
}

/// Returns the items of all recipes.
///
/// These are the bullets below the headings of CONTRIBUTING.md that begin with "A new".
fn recipe_items() -> Vec<String> {
    let text = read("CONTRIBUTING.md");
    let recipes = text.split("\n### ");
    let items = recipes
        .filter(|part| part.starts_with("A new "))
        .flat_map(|part| {
            let part = part.split("\n## ").next().unwrap_or_default();
            let bullets = part.split("\n- ").skip(1);
            bullets.map(|item| item.split("\n\n").next().unwrap_or_default().to_owned())
        });
    items.collect()
}

/// Returns whether a quoted word is a file or a folder of the repository.
fn is_path(word: &str) -> bool {
    let first = word.split('/').next().unwrap_or_default();
    let is_folder = ["src", "tests", "docs", "benches", "grafana", "packaging"].contains(&first);
    word.contains('/') && is_folder || is_a(Path::new(word), "md")
}

#[test]
fn the_files_of_each_recipe_exist_and_have_what_it_names() {
    let items = recipe_items();
    assert!(items.len() > 20, "only {} items", items.len());
    for item in &items {
        let mut within: Option<&str> = None;
        for word in item.split('`').skip(1).step_by(2) {
            if is_path(word) {
                assert!(root().join(word).exists(), "{word}: {item}");
                within = Some(word);
                continue;
            }
            // A name of the code follows the file that contains it.
            let is_name = word.chars().all(|c| c.is_alphanumeric() || c == '_');
            if let Some(path) = within.filter(|path| is_a(Path::new(path), "rs") && is_name) {
                assert!(read(path).contains(word), "{path} has no {word}: {item}");
            }
        }
    }
}
