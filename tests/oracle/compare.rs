//! Compares what two parsers read.

use gateway::http::message::Trailers;
use http::Uri;

use crate::oracle::reading::{FieldList, Reading};
use crate::oracle::subject::{End, of_trailers};

/// Compares drip's messages and its next action with hyper's messages.
///
/// # Errors
///
/// Returns the first difference, unless drip refuses what hyper accepts.
pub fn check(drip: &[Reading], end: End, hyper: &[Reading]) -> Result<(), String> {
    for (nth, ours) in drip.iter().enumerate() {
        let Some(theirs) = hyper.get(nth) else {
            if is_excused(ours) {
                return Ok(());
            }
            return Err(format!("only drip reads message {nth}: {ours:?}"));
        };
        let differ = |what: &str| Err(format!("{what} differ: drip {ours:?}\nhyper {theirs:?}"));
        if ours.head != theirs.head {
            return differ("heads");
        }
        let is_last = nth + 1 == drip.len();
        if ours.whole {
            if !theirs.whole || ours.data != theirs.data {
                return differ("bodies");
            }
            if ours.trailers != passing(&theirs.trailers) {
                return differ("trailers");
            }
            if ours.keeps != theirs.keeps {
                // hyper ignores such a field, drip reads each option.
                let is_plain = |byte: &u8| *byte == b'\t' || (b' '..=b'~').contains(byte);
                let mut options = values(ours, "connection");
                if options.all(|value| value.iter().all(is_plain)) {
                    return differ("ends");
                }
                return Ok(());
            }
        } else {
            let common = ours.data.len().min(theirs.data.len());
            if ours.data[..common] != theirs.data[..common] {
                return differ("bodies");
            }
            if theirs.whole && is_last && end != End::Refuses {
                return differ("ends");
            }
        }
    }
    if hyper.len() > drip.len() && end != End::Refuses {
        return Err(format!("only hyper reads another: {:?}", hyper[drip.len()]));
    }
    Ok(())
}

/// Returns those of hyper's trailers that drip forwards.
fn passing(trailers: &FieldList) -> FieldList {
    let mut passing = Trailers::default();
    for (name, value) in trailers {
        passing.push(name.as_bytes(), value);
    }
    of_trailers(&passing)
}

fn values<'a>(of: &'a Reading, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    let named = of.head.fields.iter().filter(move |(it, _)| it == name);
    named.map(|(_, value)| &**value)
}

/// Returns whether hyper may refuse a message that drip reads.
fn is_excused(ours: &Reading) -> bool {
    // hyper treats a target as text, and refuses some bytes that Prometheus and others send. drip
    // forwards all bytes that do not split a line (RFC 9112, section 3.2), and checks an authority
    // itself before it forwards the request.
    let is_uri = |target: &[u8]| str::from_utf8(target).is_ok() && Uri::try_from(target).is_ok();
    if ours.target.as_deref().is_some_and(|target| !is_uri(target)) {
        return true;
    }
    // hyper reserves the two largest numbers.
    let lengths = values(ours, "content-length");
    let mut lengths = lengths.filter_map(|it| str::from_utf8(it).ok()?.parse().ok());
    lengths.any(|length: u64| length > u64::MAX - 2)
}
