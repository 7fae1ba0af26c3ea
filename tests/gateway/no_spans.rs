//! A build that sends no spans.

use crate::support::{Origin, Site, drip, one_zone};

#[test]
fn a_build_without_spans_refuses_a_collector_and_says_which_build_has_them() {
    let origin = Origin::start();
    let zone = one_zone(&origin, "5r/s", "burst = 5");
    let check = |otlp: &str| {
        let site = Site::new();
        site.write(&format!("{zone}[log]\notlp = \"{otlp}\"\n"));
        let checked = drip().arg("check").arg("-c").arg(site.file()).output();
        let checked = checked.expect("the program starts");
        (
            checked.status.success(),
            String::from_utf8_lossy(&checked.stderr).into_owned(),
        )
    };
    let (is_right, said) = check("http://127.0.0.1:4318");
    assert!(!is_right, "{said}");
    let remedy = "cargo install --path . --features otlp";
    assert!(said.contains("otlp: ") && said.contains(remedy), "{said}");
    assert!(check("off").0);
}
