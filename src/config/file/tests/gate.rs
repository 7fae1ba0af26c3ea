//! Tests of classes, costs and refunds.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use super::*;

/// Text in the smallest file that cases replace.
const ROUTE: &str = "origin = \"app\"";
/// Text in the smallest file that cases replace.
const SERVERS: &str = "[\"http://127.0.0.1:9000\"]";

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    (SERVERS, "[\"http://a\"]\nrate = \"200r/s\"\nstore = \"redis\"\ngateways = 3", ""),
    // [origins.NAME.classes]
    (SERVERS, "[\"http://a\"]\nclasses = 3",
     "3:11: classes: expected a table of weights such as { interactive = 8, batch = 1 }; found 3"),
    (SERVERS, "[\"http://a\"]\nclasses = { \"a b\" = 1001 }",
     "3:21: a b: a name is made of letters, digits, _, - and .\n3:21: a b: expected a whole number from 1 to 1000; found 1001"),
    (SERVERS, "[\"http://a\"]\nclasses = { a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1 }",
     "3:11: classes: it has at most 8 classes; found 9"),
    // Class of a route.
    (ROUTE, "origin = \"app\"\nclass = \"batch\"",
     "11:9: class: the origin has no classes; add [origins.app.classes] with batch = 1"),
    (SMALLEST, "[origins.app]\nservers = [\"http://a\"]\nclasses = { batch = 1, other = 2 }\n[[routes]]\npath = \"/\"\norigin = \"app\"\nclass = \"bach\"",
     "7:9: class: [origins.app.classes] has no bach; did you mean \"batch\"?"),
    // Cost of a route.
    (ROUTE, "origin = \"app\"\ncost = 22",
     "11:8: cost: a request of cost 22 would never pass the limit in zone per_client, which takes 21 at once; raise its burst to at least 21, or lower the cost"),
    (ROUTE, "origin = \"app\"\ncost = { header = \"x cost\", max = 2 }",
     "11:19: header: expected the name of a header field such as \"x-cost\"; found \"x cost\""),
    (ROUTE, "origin = \"app\"\ncost = { header = \"x-cost\", default = 3, max = 2 }",
     "11:8: cost: default is above max, which is 2; raise max, or lower it"),
    (ROUTE, "origin = \"app\"\ncost = { response_header = \"x-drip-cost\", estimate = 9, max = 2 }",
     "11:8: cost: estimate is above max, which is 2; raise max, or lower it"),
    // A cost that is learned.
    (ROUTE, "origin = \"app\"\ncost = { learn = \"time\", unit = \"10ms\", max = 9 }",
     "11:8: cost: a learned cost needs the number of requests that the origin works on at once; add max_in_flight to [origins.app]"),
    (ROUTE, "origin = \"app\"\ncost = { learn = \"time\", unit = \"10ms\", max = 9, estimate = 2 }",
     "11:8: cost: a learned cost needs the number of requests that the origin works on at once; add max_in_flight to [origins.app]\n11:50: \"estimate\" is not a field of cost, whose fields are learn, unit, max, mode"),
    ("rate = \"10r/s\"\n\n[[routes]]\n", "rate = \"10r/s\"\nstore = \"redis\"\n[[routes]]\ncost = { response_header = \"X-Drip-Cost\", estimate = 2, max = 9 }\n", ""),
    // Refund of a route.
    (ROUTE, "origin = \"app\"\nrefund = [\"1xx\"]",
     "11:11: refund: a status is from 200 to 599, or one of \"2xx\", \"3xx\", \"4xx\", \"5xx\"; found \"1xx\""),
];

#[test]
fn a_route_without_a_class_is_of_the_first() {
    let classes = "[\"http://a\"]\nclasses = { interactive = 8, batch = 1 }";
    let settings = settings_with(SERVERS, classes);
    assert_eq!(&*settings.routes[0].class, "interactive");
    let classes = &settings.origins[0].classes;
    let weights: Vec<u32> = classes.iter().map(|class| class.weight).collect();
    assert_eq!(weights, [8, 1]);
}

#[test]
fn learned_costs_in_shadow_mode_fit_any_limit() {
    let with_cost = |mode: &str| {
        let cost = format!("cost = {{ learn = \"time\", unit = \"10ms\", max = 64{mode} }}");
        let text = SMALLEST.replacen(ROUTE, &format!("{ROUTE}\n{cost}"), 1);
        text.replacen(SERVERS, &format!("{SERVERS}\nmax_in_flight = 4"), 1)
    };
    // The burst of the limit is 20.
    let found = problems(&with_cost(""));
    assert!(found.contains("raise its burst to at least 63"), "{found}");
    let settings = settings_of(&with_cost(", mode = \"shadow\""));
    assert_eq!(settings.routes[0].cost.max().get(), 1);
    assert!(settings.routes[0].charge_depends_on_response());
}
