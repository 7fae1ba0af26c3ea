//! Tests of the sequential test, which calls a level good or bad.
//!
//! A *block* has the responses to the requests of one second. The *ratio* of likelihoods decides
//! between two shares of bad responses. The *dispersion* is the variance of blocks divided by that
//! of independent responses. A *spell* is a few seconds so bad that they decide at once.

#![expect(
    clippy::float_cmp,
    reason = "counts and the least dispersion are exact"
)]

use testing::Random;

use super::*;

/// Returns the verdict on a level, and the number of blocks that it took.
///
/// It is good after 20 blocks at the earliest, and decided by its figures after 60.
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
    let verdict = [TestVerdict::Good, TestVerdict::Bad][usize::from(is_bad)];
    (verdict, blocks.len())
}

/// Returns the part of 1000 levels that is called bad, and the mean number of blocks.
fn taken_for_bad(allowed: f64, mut block: impl FnMut(&mut Random) -> Sample) -> (f64, f64) {
    let (mut random, test) = (Random(7), SequentialTest::new(allowed, 1));
    let (mut bad, mut length) = (0.0, 0.0);
    for _ in 0..1000 {
        let (verdict, blocks) = decide(&test, || block(&mut random));
        bad += f64::from(u8::from(verdict == TestVerdict::Bad));
        length += to_float(blocks as u64);
    }
    (bad / 1000.0, length / 1000.0)
}

/// Returns a block of this number of responses, and of the bad ones among them.
fn sample(count: f64, bad: f64) -> Sample {
    Sample { count, bad }
}

/// Returns a block of `count` responses, each bad with a probability of `share`.
fn independent(random: &mut Random, count: u32, share: f64) -> Sample {
    let bad = (0..count).filter(|_| random.share() < share).count();
    sample(count.into(), to_float(bad as u64))
}

#[test]
fn both_errors_are_below_five_percent_where_answers_are_independent() {
    // Share of bad responses that is allowed, responses of a block.
    for (allowed, count) in [(0.05, 20), (0.05, 200), (0.005, 50), (0.01, 100), (0.5, 10)] {
        let (wrong, _) = taken_for_bad(allowed, |random| independent(random, count, allowed / 2.0));
        let (right, blocks) =
            taken_for_bad(allowed, |random| independent(random, count, allowed * 1.5));
        println!("{allowed} of {count}: {wrong}, {right} after {blocks}");
        assert!(wrong <= 0.05, "{allowed} of {count}: {wrong}");
        assert!(right >= 0.95, "{allowed} of {count}: {right}");
    }
}

/// Returns a block of 200 responses, of which none or `bunch` are bad: `share` on average.
fn bunched(random: &mut Random, bunch: f64, share: f64) -> Sample {
    let is_hit = random.share() < share * 200.0 / bunch;
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
        let verdict = SequentialTest::new(0.05, 1).decide(&blocks);
        assert_ne!(verdict, TestVerdict::Bad);
    }
}

#[test]
fn the_ratio_is_that_of_the_answers_one_by_one() {
    let test = SequentialTest::new(0.05, 1);
    let blocks = [sample(40.0, 2.0); 5];
    // Probabilities of a bad answer at a good level, and at a bad one.
    let (at_good, at_bad) = (0.025, 0.075);
    let of_bad_answers = 10.0 * f64::ln(at_bad / at_good);
    let of_good_answers = 190.0 * f64::ln((1.0 - at_bad) / (1.0 - at_good));
    let sum = of_bad_answers + of_good_answers;
    assert!((test.log_ratio(&blocks) - sum).abs() < 1e-9);
    // More conditions need more evidence for each.
    let eight = SequentialTest::new(0.05, 8);
    assert!(eight.bad_above > test.bad_above && eight.good_below == test.good_below);
}

#[test]
fn the_dispersion_is_one_for_independent_answers_and_a_bunch_for_bunches() {
    let mut random = Random(3);
    let mut of_400 = |block: fn(&mut Random) -> Sample| {
        let blocks: Vec<_> = (0..400).map(|_| block(&mut random)).collect();
        dispersion(&blocks)
    };
    let found = of_400(|random| independent(random, 200, 0.05));
    assert!((1.0..1.4).contains(&found), "{found}");
    let found = of_400(|random| bunched(random, 40.0, 0.05));
    assert!((25.0..50.0).contains(&found), "{found}");
    // A disturbance of four seconds is visible in groups of four blocks.
    let bad = |nth: usize| {
        if (nth / 4).is_multiple_of(5) {
            40.0
        } else {
            0.0
        }
    };
    let blocks: Vec<_> = (0..80).map(|nth| sample(200.0, bad(nth))).collect();
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
    // Seconds of ten responses, by the number of bad ones.
    let of_ten = |bad: &[f64]| -> Vec<_> { bad.iter().map(|bad| sample(10.0, *bad)).collect() };
    assert!(test.is_bad_spell(&of_ten(&[0.0, 6.0, 10.0, 6.0])));
    assert!(!test.is_bad_spell(&of_ten(&[10.0, 10.0])));
    assert!(!test.is_bad_spell(&of_ten(&[10.0, 4.0, 10.0, 10.0])));
    // With one request per second, five bad ones end the step.
    let one_bad = sample(1.0, 1.0);
    assert!(!test.is_bad_spell(&[one_bad; 4]) && test.is_bad_spell(&[one_bad; 5]));
    // Half of all responses above the median do not break it.
    assert!(!SequentialTest::new(0.5, 1).is_bad_spell(&of_ten(&[6.0, 6.0, 6.0])));
}
