//! Tests of headlines about the configuration file.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::status::sample::{ChangeSample, LostKeysSample, Problem};

/// A plan that lost two of its three keys 3.2 seconds ago. `file`: its file, if it has one.
fn lost(file: Option<&str>) -> LostKeysSample {
    LostKeysSample {
        zone: "per_client".into(),
        plan: "gold".into(),
        file: file.map(Plain::from),
        lost: 2,
        had: 3,
        ago: 3.2,
    }
}

#[test]
fn probable_mistakes_in_the_file_are_reported() {
    reported("warn file_error", |now| {
        let missing = config::Problem::without_location("cannot be read: No such file".to_owned());
        now.error = Some(missing.into());
    })
    .says("The file cannot be read: No such file. … Write the file again")
    .not(&["Line", "line"]);
    reported("warn file_error", |now| {
        now.error = Some(Problem {
            line: Some(4),
            message: "client_cert: /a.pem: it has no certificate in PEM".into(),
            ..Problem::default()
        });
    })
    .says("Line 4: client_cert … or the one that the line names");
    reported("warn file_doubtful per_client", |now| {
        now.lost_keys = vec![lost(Some("gold.txt"))];
    })
    .says("Plan gold of per_client has lost 2 of 3 keys")
    .says("A change of gold.txt came into force 4 s ago.")
    .says("restore gold.txt: keys without a plan have the limit of per_client.");
    reported("warn file_doubtful per_client", |now| {
        now.lost_keys = vec![lost(None)];
    })
    .says("restore the file");
    reported("warn file_doubtful", |now| {
        now.needs_restart = vec!["server.workers".into()];
    })
    .says("server.workers waits for a restart … server.workers is not as in the file")
    .says("Restart the gateway, or take the change back.");
    // Settings that need a restart come last, after other warnings.
    reported("bad rejecting per_client", |now| {
        now.needs_restart = vec!["server.workers".into(), "log.file".into()];
        now.lost_keys = vec![lost(Some("gold.txt"))];
        now.zones[0].rejected = 60;
    })
    .says("lost 2 of 3 keys\nAlso: 2 settings wait for a restart");
}

#[test]
fn a_warning_after_a_change_of_the_file_says_what_changed() {
    let mut fed = EditorFixture::new();
    fed.feed(&fine(), 5);
    let mut second = fine();
    second.change = Some(ChangeSample {
        ago: 1.0,
        what: vec!["zones.per_client.rate 20r/s -> 20r/m".into()],
    });
    second.zones[0].rejected = 60;
    fed.feed(&second, 2);
    second.change = None;
    fed.feed(&second, 200);
    let reported = fed.headlines.view();
    let after = "It began 1 s after zones.per_client.rate 20r/s -> 20r/m.";
    for headline in [&reported.headline, &reported.history[0].headline] {
        assert!(headline.finding.evidence.ends_with(after), "{headline:?}");
        let remedy = headline.finding.remedy.as_str();
        assert!(remedy.starts_with("Take the change back"), "{remedy}");
    }
    // One client with the first rejections is no reason for a plan.
    second.zones[0].rejections = counts(&[("burst", 60)]);
    second.zones[0].rejected_now = heavy("alice", 1.0);
    fed.feed(&second, 5);
    let remedy = fed.headlines.view().headline.finding.remedy;
    assert_eq!(remedy.as_str(), "Take the change back if it was not meant.");
    // A later warning does not name the change.
    fed.feed(&fine(), 20);
    second.zones[0].rejected = 60;
    fed.feed(&second, 5);
    let evidence = fed.headlines.view().headline.finding.evidence;
    assert!(!evidence.contains("It began"), "{evidence}");
}
