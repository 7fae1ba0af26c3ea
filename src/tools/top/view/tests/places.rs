//! Places that gateways share, in the panel of their origin and in the text of a pipe.

use super::*;
use crate::tools::top::snapshot;

/// An origin with 40 places, of which this gateway has some.
fn sharing(places: &serde_json::Value) -> Model {
    let mut model = model();
    let gate = json!({"max_in_flight": {"file": 40, "now": 12}});
    let origins = json!({"origins": [{"name": "db", "in_flight": 9, "max_in_flight": 40,
        "gate": gate, "places": places}]});
    let origins = serde_json::from_value(origins).unwrap();
    model.hear(News::Origins(origins), at(0));
    model
}

/// The lines of the panel of origins.
fn panel(model: &Model) -> Vec<String> {
    let shown = page(model, &after(model, &[Action::Back]), (80, 24));
    let panel = shown.split("▸ origins").nth(1).expect("the panel");
    let lines = panel.lines().skip(1);
    let trimmed = lines.map(|line| line.trim_end_matches(['│', ' ']).to_owned());
    trimmed.collect()
}

#[test]
fn what_a_gateway_has_of_shared_places_is_in_the_panel_of_its_origin_and_in_the_text() {
    let places = json!({"of": 40, "held": 12, "in_use": 9, "lent": 30, "withheld": 4, "free": 6,
        "gateways": 3, "alone": false});
    let model = sharing(&places);
    let expected = "│  places: 9 used of 12 held, 6 free of 40 for 3 gateways, 4 withheld";
    let lines = panel(&model);
    assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
    let text = snapshot::text(&"127.0.0.1:9090".parse().unwrap(), &model);
    let table = "places  of  used here  held here  lent  free  withheld  gateways\n\
                 db      40          9         12    30     6         4         3\n";
    assert!(text.contains(table), "{text}");
}

#[test]
fn a_gateway_without_a_lease_says_why() {
    let places = json!({"of": 40, "held": 12, "in_use": 9, "lent": 40, "gateways": 3, "alone": true,
        "reason": "connection refused\u{1b}"});
    let model = sharing(&places);
    let why = "the lease has ended: connection refused";
    let lines = panel(&model);
    let told = format!("│  places: {why}");
    assert!(
        lines.iter().any(|line| line.starts_with(&told)),
        "{lines:#?}"
    );
    let text = snapshot::text(&"127.0.0.1:9090".parse().unwrap(), &model);
    assert!(text.contains(&format!("db: {why}")), "{text}");
}
