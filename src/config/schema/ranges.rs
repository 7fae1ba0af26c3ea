//! Regular expressions of whole numbers in a range, with or without zeros before them.

use std::collections::BTreeSet;

/// The numbers from `least` to `most`.
pub(super) fn numbers(least: u64, most: u64) -> String {
    let (least, most) = (u128::from(least), u128::from(most));
    // Where runs of numbers end that differ in their last digits only.
    let mut ends = BTreeSet::from([most]);
    let tens = || std::iter::successors(Some(10_u128), |wide| wide.checked_mul(10));
    let upwards = tens().map(|wide| least / wide * wide + wide - 1);
    ends.extend(upwards.take_while(|end| *end < most));
    let downwards = tens().map(|wide| ((most + 1) / wide * wide).saturating_sub(1));
    ends.extend(downwards.take_while(|end| *end > least));
    let mut from = least;
    let mut parts = Vec::new();
    for to in ends {
        parts.push(run(&from.to_string(), &to.to_string()));
        from = to + 1;
    }
    format!("0*({})", parts.join("|"))
}

/// The numbers between two of the same length, digit by digit.
fn run(from: &str, to: &str) -> String {
    let digits = from.chars().zip(to.chars());
    let digits = digits.map(|(from, to)| {
        if from == to {
            from.to_string()
        } else {
            format!("[{from}-{to}]")
        }
    });
    digits.collect()
}

/// Numbers with units, each unit so many times the smallest, from `least` to `most` of that.
pub(super) fn with_units(units: &[(&str, u64)], least: u64, most: u64) -> String {
    let of_unit = |(name, size): &(&str, u64)| {
        let (from, to) = (least.div_ceil(*size), most / size);
        (from <= to).then(|| format!("{}{name}", numbers(from, to)))
    };
    let parts: Vec<String> = units.iter().filter_map(of_unit).collect();
    parts.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_numbers_of_a_range_match() {
        let ranges = [
            (0, 0),
            (0, 9),
            (1, 9),
            (0, 10),
            (7, 1234),
            (1, 65_535),
            (10, 10),
            (99, 101),
            (0, 366),
            (1024, 4096),
            (100, 2999),
        ];
        for (least, most) in ranges {
            let pattern = regex::Regex::new(&format!("^({})$", numbers(least, most))).unwrap();
            for number in 0..70_000_u64 {
                let is_in = (least..=most).contains(&number);
                assert_eq!(
                    pattern.is_match(&number.to_string()),
                    is_in,
                    "{number} {pattern}"
                );
            }
            assert!(pattern.is_match(&format!("00{least}")));
        }
        let all = regex::Regex::new(&format!("^({})$", numbers(0, u64::MAX))).unwrap();
        assert!(all.is_match(&u64::MAX.to_string()) && !all.is_match("18446744073709551616"));
    }
}
