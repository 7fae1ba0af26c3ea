//! A call of a gateway to a pool of places and its reply, read as `places.lua` documents them.

use std::fmt::Write;

use super::redis::Reply;
use super::script_call::Packed;

/// A call and its reply in few words; `None` if the command is none, or has failed.
pub(super) fn read(command: &[Vec<u8>], reply: &Reply) -> Option<String> {
    let [_, _, _, key, packed] = command else {
        return None;
    };
    let Reply::Text(reply) = reply else {
        return None;
    };
    let key = String::from_utf8_lossy(key);
    key.contains(":places:").then_some(())?;
    let (mut asked, mut told) = (Packed(packed), Packed(reply));
    let mut text = String::new();
    for _ in 0..4 {
        asked.double()?;
    }
    asked.take::<8>()?;
    for name in [
        "call", "held", "in use", "of all", "usable", "wish", "weight", "knows", "of",
    ] {
        write!(text, "{name} {} ", asked.double()?).ok()?;
    }
    let now = told.double()?;
    write!(
        text,
        "leaves {}; at {now}: {} ",
        asked.byte()?,
        told.byte()?
    )
    .ok()?;
    for name in ["lent", "keeps"] {
        write!(text, "{name} {} ", told.double()?).ok()?;
    }
    write!(text, "flags {} ", told.byte()?).ok()?;
    let counts = ["of", "gateways", "held", "in use", "withheld", "free"];
    for name in counts.into_iter().chain(["registrations", "members"]) {
        write!(text, "{name} {} ", told.double()?).ok()?;
    }
    Some(text)
}
