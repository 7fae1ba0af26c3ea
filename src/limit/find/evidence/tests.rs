//! Tests of the sequential test.

#![expect(
    clippy::float_cmp,
    reason = "counts and the least dispersion are exact"
)]

use super::*;

/// `SplitMix64`, as a number from 0 to 1.
struct Random(u64);

impl Random {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the verdict of a step, and its blocks: good after 20 blocks, by its figures after 60.
fn decide(test: &SequentialTest, mut block: impl FnMut() -> Sample) -> (TestVerdict, usize) {
    let mut blocks = Vec::new();
    while blocks.len() < 60 || !test.has_enough(&blocks) {
        blocks.push(block());
        match test.decide(&blocks) {
            TestVerdict::Bad => return (TestVerdict::Bad, blocks.len()),
            TestVerdict::Good if blocks.len() >= 20 => return (TestVerdict::Good, blocks.len()),
            _ => {}
        }
    }
    let is_bad = test.closeness(&blocks) > 1.0;
    (
        if is_bad {
            TestVerdict::Bad
        } else {
            TestVerdict::Good
        },
        blocks.len(),
    )
}

/// Returns the part of 1000 steps that is called bad, and their mean length in blocks.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn taken_for_bad(allowed: f64, mut block: impl FnMut(&mut Random) -> Sample) -> (f64, f64) {
    let (mut random, test) = (Random(7), SequentialTest::new(allowed, 1));
    let runs: Vec<_> = (0..1000)
        .map(|_| decide(&test, || block(&mut random)))
        .collect();
    let bad = runs
        .iter()
        .filter(|(verdict, _)| *verdict == TestVerdict::Bad)
        .count();
    let blocks: usize = runs.iter().map(|(_, blocks)| blocks).sum();
    (bad as f64 / 1000.0, blocks as f64 / 1000.0)
}

fn sample(count: f64, bad: f64) -> Sample {
    Sample { count, bad }
}

/// Returns a block of `count` independent responses.
fn independent(random: &mut Random, count: u32, share: f64) -> Sample {
    let bad: f64 = (0..count)
        .map(|_| f64::from(u8::from(random.next() < share)))
        .sum();
    sample(count.into(), bad)
}

#[test]
fn both_errors_are_below_five_percent_where_answers_are_independent() {
    for (allowed, count) in [(0.05, 20), (0.05, 200), (0.005, 50), (0.01, 100), (0.5, 10)] {
        let (wrong, _) = taken_for_bad(allowed, |random| independent(random, count, allowed / 2.0));
        let (right, blocks) =
            taken_for_bad(allowed, |random| independent(random, count, allowed * 1.5));
        println!("{allowed} of {count}: {wrong}, {right} after {blocks}");
        assert!(wrong <= 0.05, "{allowed} of {count}: {wrong}");
        assert!(right >= 0.95, "{allowed} of {count}: {right}");
    }
}

/// Returns a block that has, with a certain probability, `bunch` bad responses of 200.
fn bunched(random: &mut Random, bunch: f64, share: f64) -> Sample {
    let is_hit = random.next() < share * 200.0 / bunch;
    sample(200.0, if is_hit { bunch } else { 0.0 })
}

#[test]
fn both_errors_are_below_five_percent_where_bad_answers_come_in_bunches() {
    for bunch in [20.0, 40.0] {
        let (wrong, _) = taken_for_bad(0.05, |random| bunched(random, bunch, 0.025));
        let (right, blocks) = taken_for_bad(0.05, |random| bunched(random, bunch, 0.075));
        println!("bunches of {bunch}: {wrong}, {right} after {blocks}");
        assert!(wrong <= 0.05 && right >= 0.95, "{bunch}: {wrong} {right}");
        // Without the dispersion, the first bunches decide.
        let blocks = [bunch, 0.0, 0.0].map(|bad| sample(200.0, bad));
        assert_ne!(
            SequentialTest::new(0.05, 1).decide(&blocks),
            TestVerdict::Bad
        );
    }
}

#[test]
fn the_ratio_is_that_of_the_answers_one_by_one() {
    let test = SequentialTest::new(0.05, 1);
    let blocks = [sample(40.0, 2.0); 5];
    let by_answer = |is_bad: bool| {
        let (good, bad) = (0.025, 0.075);
        if is_bad {
            f64::ln(bad / good)
        } else {
            f64::ln((1.0 - bad) / (1.0 - good))
        }
    };
    let naive: f64 = (0..200).map(|nth| by_answer(nth % 20 == 0)).sum();
    assert!((test.log_ratio(&blocks) - naive).abs() < 1e-9);
    // More conditions need more evidence for each.
    let eight = SequentialTest::new(0.05, 8);
    assert!(eight.bad_above > test.bad_above && eight.good_below == test.good_below);
}

#[test]
fn the_dispersion_is_one_for_independent_answers_and_a_bunch_for_bunches() {
    let mut random = Random(3);
    let blocks: Vec<_> = (0..400)
        .map(|_| independent(&mut random, 200, 0.05))
        .collect();
    let found = dispersion(&blocks);
    assert!((1.0..1.4).contains(&found), "{found}");
    let blocks: Vec<_> = (0..400).map(|_| bunched(&mut random, 40.0, 0.05)).collect();
    let found = dispersion(&blocks);
    assert!((25.0..50.0).contains(&found), "{found}");
    // A disturbance of four seconds is visible in blocks of four.
    let is_bad = |nth: usize| (nth / 4).is_multiple_of(5);
    let blocks: Vec<_> = (0..80)
        .map(|nth| sample(200.0, if is_bad(nth) { 40.0 } else { 0.0 }))
        .collect();
    let (by_four, by_two) = (
        dispersion(&blocks),
        dispersion(&blocks[..4 * MIN_GROUPS - 1]),
    );
    assert!(by_four > 1.4 * by_two, "{by_four} {by_two}");
    assert_eq!(dispersion(&[]), 1.0);
    assert_eq!(dispersion(&[sample(9.0, 9.0); 9]), 1.0);
}

#[test]
fn three_bad_seconds_end_a_step_and_two_do_not() {
    let test = SequentialTest::new(0.05, 1);
    let of = |bad: &[f64]| -> Vec<_> { bad.iter().map(|bad| sample(10.0, *bad)).collect() };
    assert!(test.is_spell(&of(&[0.0, 6.0, 10.0, 6.0])));
    assert!(!test.is_spell(&of(&[10.0, 10.0])));
    assert!(!test.is_spell(&of(&[10.0, 4.0, 10.0, 10.0])));
    // With one request per second, five bad ones end the step.
    let rare = |bad| sample(1.0, bad);
    assert!(!test.is_spell(&[rare(1.0); 4]) && test.is_spell(&[rare(1.0); 5]));
    // Half of all responses above the median do not break it.
    assert!(!SequentialTest::new(0.5, 1).is_spell(&of(&[6.0, 6.0, 6.0])));
}
