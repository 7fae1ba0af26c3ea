//! Tests of the budget of a request: reading callgrind's output, and comparing figures.

// The bench uses other parts of these modules.
#[allow(dead_code)]
#[path = "../../benches/budget/limits.rs"]
mod limits;
#[allow(dead_code)]
#[path = "../../benches/budget/profile.rs"]
mod profile;

use limits::{Figures, Group, Verdict};
use profile::{Function, Profile};

/// Profile of a thread that allocates twice and reads the clock three times.
const THREAD: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
positions: line
events: Ir
summary: 161

ob=(1) /usr/bin/drip
fl=(1) src/main.rs
fn=(1) drip::main
16 100
+1 5
cfi=(2) alloc.c
cfn=(2) realloc
calls=2 40
* 30
cob=(2) libc.so.6
cfn=(3) clock_gettime@@GLIBC_2.17
calls=3 0
+2 21

fl=(2)
fn=(2)
40 10
cfn=(4) malloc
calls=2 50
+1 20

fn=(4)
50 18
cfn=(5) mi_malloc_generic'2
calls=1 60
60 2

fn=(5)
60 2

ob=(2)
fn=(3)
0 21
totals: 156
";

#[test]
fn callgrinds_file_gives_instructions_and_calls_of_each_function() {
    let mut profile = Profile::default();
    profile.add(THREAD);
    assert_eq!(profile.instructions(), 105 + 10 + 18 + 2 + 21);
    let function = |name: &str| profile.functions()[name];
    let of = |instructions, calls| Function {
        instructions,
        calls,
    };
    assert_eq!(function("drip::main"), of(105, 0));
    assert_eq!(function("clock_gettime@@GLIBC_2.17"), of(21, 3));
    // A recursive function counts as one, at any depth.
    assert_eq!(function("mi_malloc_generic").instructions, 2);
    // An allocation counts once, although the allocator calls itself.
    assert_eq!(profile.calls(profile::allocates), 2);
    assert_eq!(profile.calls(profile::reads_clock), 3);
    // The counts of a second thread are added, although its functions have other numbers.
    profile.add("fn=(1) drip::work\n1 7\ncfn=(9) calloc\ncalls=4 1\n1 9\n");
    assert_eq!(profile.calls(profile::allocates), 6);
    assert_eq!(profile.functions()["drip::work"].instructions, 7);
}

/// Returns the verdict on each of some figures, by name.
fn verdicts(budget: &str, measured: &[(Group, &str, f64)]) -> Vec<(String, Verdict)> {
    let budget = limits::parse(budget).expect("a budget");
    let measured = measured
        .iter()
        .map(|(group, name, figure)| ((*group, (*name).to_owned()), *figure));
    let rows = limits::rows(&budget, &measured.collect(), |_, _| true);
    rows.into_iter()
        .map(|row| (row.name.clone(), row.verdict()))
        .collect()
}

#[test]
fn instructions_have_two_percent_bytes_three_and_sizes_none() {
    let cases = [
        (Group::Instructions, 1021.0, Verdict::Above),
        (Group::Instructions, 979.0, Verdict::Below),
        (Group::Bytes, 1031.0, Verdict::Above),
        (Group::Allocations, 1000.2, Verdict::Within),
        (Group::Allocations, 1001.0, Verdict::Above),
        (Group::ClockReads, 1001.0, Verdict::Above),
        (Group::Sizes, 1000.0, Verdict::Within),
        (Group::Sizes, 1001.0, Verdict::Above),
        (Group::Sizes, 999.0, Verdict::Below),
    ];
    for (group, figure, expected) in cases {
        let budget = format!("[{}]\nproxied = 1000\n", group.name());
        let verdicts = verdicts(&budget, &[(group, "proxied", figure)]);
        let one = [("proxied".to_owned(), expected)];
        assert_eq!(verdicts, one, "{group:?} {figure}");
    }
}

#[test]
fn a_figure_without_a_budget_and_a_budget_without_a_figure_fail() {
    let verdicts = verdicts("[bytes]\ngone = 7\n", &[(Group::Bytes, "new", 7.0)]);
    let expected = [("gone", Verdict::Above), ("new", Verdict::Above)];
    let expected = expected.map(|(name, verdict)| (name.to_owned(), verdict));
    assert_eq!(verdicts, expected);
}

#[test]
fn the_budget_is_the_file_that_the_bench_writes() {
    let text = include_str!("../../benches/budget.toml");
    let figures: Figures = limits::parse(text).expect("a budget");
    assert_eq!(limits::write(&figures), text);
    for group in Group::ALL {
        assert!(figures.keys().any(|(of, _)| *of == group), "no {group:?}");
    }
}
