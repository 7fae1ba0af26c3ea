//! Numbers as text for people.

/// Formats a count with its noun: `1 request`, `12,345 requests`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", whole(number))
}

/// Returns `is` or `are`, the verb after this number of things.
pub(crate) fn is(number: u64) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// Formats a whole number, its digits in groups of three.
pub(crate) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a rate: one decimal below 10; below one in ten seconds, as a rate a minute.
pub(crate) fn pace(a_second: f64) -> String {
    if a_second > 0.0 && a_second < 0.1 {
        format!("{:.1} a minute", a_second * 60.0)
    } else if a_second < 10.0 {
        format!("{a_second:.1} a second")
    } else {
        format!("{a_second:.0} a second")
    }
}

/// Formats a rate in units of cost: routes may let a request cost more than 1.
pub(crate) fn pace_of_units(a_second: f64) -> String {
    let pace = pace(a_second);
    match pace.split_once(' ') {
        Some((number, per)) => format!("{number} units of cost {per}"),
        None => pace,
    }
}

/// Formats a share from 0 to 1 as percent, without decimals.
///
/// A share between 0 and 1 is never shown as 0 % or 100 %.
pub(crate) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent > 0.0 && percent < 1.0 {
        "less than 1 %".to_owned()
    } else if percent < 100.0 && percent > 99.0 {
        "more than 99 %".to_owned()
    } else {
        format!("{percent:.0} %")
    }
}

/// Formats a duration given in seconds, with about two digits.
pub(crate) fn seconds(span: f64) -> String {
    match span {
        span if span < 0.001 => "less than 1 ms".to_owned(),
        span if span < 1.0 => format!("{:.0} ms", span * 1e3),
        span if span < 10.0 => format!("{span:.1} s"),
        span if span < 120.0 => format!("{span:.0} s"),
        span => format!("{:.0} min", span / 60.0),
    }
}

/// Formats a duration given in seconds, in whole seconds or minutes, and never 0.
pub(crate) fn whole_seconds(span: f64) -> String {
    match span.ceil().max(1.0) {
        whole if whole < 120.0 => format!("{whole:.0} s"),
        whole => format!("{:.0} min", whole / 60.0),
    }
}

/// Makes a sentence: a capital at the beginning and a full stop at the end.
pub(crate) fn sentence(text: &str) -> String {
    let mut rest = text.trim_end_matches('.').chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).chain(['.']).collect()
}

/// Joins words, the last two by `and`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Divides a part by its whole; if the whole is 0, returns the part itself.
pub(crate) fn part(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Formats a number of waiting requests: `1 request waits`, `2 requests wait`.
pub(crate) fn waiting(depth: u64) -> String {
    let waits = if depth == 1 { "waits" } else { "wait" };
    format!("{} {waits}", count(depth, "request"))
}
