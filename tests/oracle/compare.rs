//! Compares what two parsers read.

use gateway::http::message::Trailers;

use crate::oracle::excuses;
use crate::oracle::reading::{FieldList, Reading};
use crate::oracle::subject::{End, of_trailers};

/// Compares what drip read, and what it did then, with what hyper read.
///
/// # Errors
///
/// Returns the first difference, unless drip refuses where hyper does not.
pub fn check(drip: &[Reading], end: End, hyper: &[Reading]) -> Result<(), String> {
    for (nth, ours) in drip.iter().enumerate() {
        let Some(theirs) = hyper.get(nth) else {
            if excuses::of_message(ours).is_some() {
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
                return match excuses::of_end(ours) {
                    Some(_) => Ok(()),
                    None => differ("ends"),
                };
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

/// Those of hyper's trailers that drip forwards.
fn passing(trailers: &FieldList) -> FieldList {
    let mut passing = Trailers::default();
    for (name, value) in trailers {
        passing.push(name.as_bytes(), value);
    }
    of_trailers(&passing)
}
