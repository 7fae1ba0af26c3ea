//! Signed tickets and sessions that visitors keep: only the room can make them.
//!
//! `bind` is a value of the visitor, such as its address, that a text is bound to. A *body* is the
//! data of a ticket or of a session. The text of both is the body and its signature, in Base64.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use limit::{LotteryKeys, Moment};
use ring::hmac;
use subtle::ConstantTimeEq;

use crate::time::clock;

/// Ticket of a waiting visitor: its position number, with the time and the prediction at the draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Position number.
    pub number: u64,
    /// Instant of the draw, in whole seconds.
    pub drawn: Moment,
    /// Wait that was predicted at the draw, in whole seconds; `None`: there was no prediction.
    pub predicted: Option<Duration>,
}

/// Value presented by a visitor and signed by this room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed<T> {
    /// The signed value.
    pub value: T,
    /// Whether an older secret signed it: the visitor should get a new text.
    pub is_older: bool,
}

impl<T> Signed<T> {
    /// Converts the value, and keeps the mark of an older secret.
    fn and_then<U>(self, convert: impl FnOnce(T) -> Option<U>) -> Option<Signed<U>> {
        let is_older = self.is_older;
        convert(self.value).map(|value| Signed { value, is_older })
    }
}

/// Signs and verifies tickets and sessions of one room.
pub(super) struct Signer {
    /// One key for each secret; the first one signs.
    keys: Vec<hmac::Key>,
    /// Data of the room in all signatures: its life, the length of its name, and its name.
    context: Vec<u8>,
}

/// Length of a signature, in bytes. Nobody guesses 128 bits.
const SIGNATURE: usize = 16;
/// Length of a ticket, in bytes: number, instant, predicted wait.
const TICKET: usize = 8 + 4 + 4;
/// Length of a session, in bytes: its number.
const SESSION: usize = 8;
/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 64;

/// Purpose of a signature, part of the signed data: a text of one kind is not valid as another.
#[derive(Clone, Copy)]
enum Purpose {
    Ticket = 1,
    Session = 2,
    Lottery = 3,
}

impl Signer {
    /// Creates a signer. `life`: random number of the room. Texts of an earlier life are invalid.
    pub(super) fn new<'s>(secrets: impl Iterator<Item = &'s [u8]>, room: &str, life: u64) -> Self {
        let mut context = life.to_be_bytes().to_vec();
        context.extend_from_slice(&(room.len() as u64).to_be_bytes());
        context.extend_from_slice(room.as_bytes());
        let keys = secrets.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret));
        Self {
            keys: keys.collect(),
            context,
        }
    }

    /// Signs a ticket, for visitors with the same value of `bind`.
    pub(super) fn ticket(&self, ticket: &Ticket, bind: &[u8]) -> String {
        let mut body = [0; TICKET];
        // By the wall clock, because other gateways of a shared room read the ticket, too.
        let seconds = clock::to_wall(ticket.drawn).as_nanos() / 1_000_000_000;
        let predicted = ticket.predicted.map(|wait| to_u32(wait.as_secs()));
        let predicted = predicted.unwrap_or(u32::MAX);
        body[..8].copy_from_slice(&ticket.number.to_be_bytes());
        body[8..12].copy_from_slice(&to_u32(seconds).to_be_bytes());
        body[12..].copy_from_slice(&predicted.to_be_bytes());
        self.text(Purpose::Ticket, &body, bind)
    }

    /// Reads a ticket; `None` if this room did not sign it for such a visitor.
    pub(super) fn read_ticket(&self, text: &[u8], bind: &[u8]) -> Option<Signed<Ticket>> {
        let read = self.read::<TICKET>(Purpose::Ticket, text, bind)?;
        read.and_then(|body| {
            let (number, rest) = body.split_first_chunk()?;
            let (drawn, predicted) = rest.split_first_chunk()?;
            let predicted = u32::from_be_bytes(predicted.try_into().ok()?);
            let drawn = Duration::from_secs(u32::from_be_bytes(*drawn).into());
            Some(Ticket {
                number: u64::from_be_bytes(*number),
                drawn: clock::from_wall(Moment::default() + drawn),
                predicted: (predicted != u32::MAX).then(|| Duration::from_secs(predicted.into())),
            })
        })
    }

    /// Signs a session, for visitors with the same value of `bind`.
    pub(super) fn session(&self, number: u64, bind: &[u8]) -> String {
        self.text(Purpose::Session, &number.to_be_bytes(), bind)
    }

    /// Reads the number of a session; `None` if this room did not sign it for such a visitor.
    pub(super) fn read_session(&self, text: &[u8], bind: &[u8]) -> Option<Signed<u64>> {
        let read = self.read::<SESSION>(Purpose::Session, text, bind)?;
        read.and_then(|body| Some(u64::from_be_bytes(body)))
    }

    /// Returns the keys of the random order of visitors who came before `opens`.
    ///
    /// There is one key for each round of the order's permutation: the beginning of a signature of
    /// the round's number. So anybody with the secret can check the order.
    pub(super) fn lottery_keys(&self, opens: Moment) -> LotteryKeys {
        std::array::from_fn(|round| {
            let (round, opens) = ([u8::try_from(round).unwrap_or(0)], opens.as_nanos());
            let key = self.keys.first();
            let tag = key.map(|key| self.sign(key, Purpose::Lottery, &round, &opens.to_be_bytes()));
            let begin = tag.as_ref().and_then(|tag| tag.as_ref().first_chunk());
            begin.map_or(0, |bytes| u64::from_be_bytes(*bytes))
        })
    }

    /// Computes the signature of a body.
    fn sign(&self, key: &hmac::Key, purpose: Purpose, body: &[u8], bind: &[u8]) -> hmac::Tag {
        let mut signed = hmac::Context::with_key(key);
        signed.update(&[purpose as u8]);
        signed.update(&self.context);
        signed.update(body);
        // `bind` is last, so it needs no length: the lengths of all data before it are known.
        signed.update(bind);
        signed.sign()
    }

    /// Encodes a signed body as text.
    fn text(&self, purpose: Purpose, body: &[u8], bind: &[u8]) -> String {
        let Some(key) = self.keys.first() else {
            return String::new();
        };
        let tag = self.sign(key, purpose, body, bind);
        let mut bytes = [0; TICKET + SIGNATURE];
        let (start, rest) = bytes.split_at_mut(body.len());
        start.copy_from_slice(body);
        rest[..SIGNATURE].copy_from_slice(&tag.as_ref()[..SIGNATURE]);
        BASE64.encode(&bytes[..body.len() + SIGNATURE])
    }

    /// Decodes a text and verifies its signature.
    fn read<const SIZE: usize>(
        &self,
        purpose: Purpose,
        text: &[u8],
        bind: &[u8],
    ) -> Option<Signed<[u8; SIZE]>> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let mut bytes = [0; MAX_TEXT];
        let length = BASE64.decode_slice(text, &mut bytes).ok()?;
        let (body, signature) = bytes[..length].split_first_chunk::<SIZE>()?;
        if signature.len() != SIGNATURE {
            return None;
        }
        let nth = self.keys.iter().position(|key| {
            let tag = self.sign(key, purpose, body, bind);
            // In constant time, so that the duration does not reveal a part of the signature.
            tag.as_ref()[..SIGNATURE].ct_eq(signature).into()
        })?;
        Some(Signed {
            value: *body,
            is_older: nth > 0,
        })
    }
}

/// Limits seconds to 32 bits, without the maximum value, which stands for `None`.
fn to_u32(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(secrets: &[&str], room: &str, life: u64) -> Signer {
        Signer::new(secrets.iter().map(|it| it.as_bytes()), room, life)
    }

    /// Returns a value that the first secret has signed.
    fn current<T>(value: T) -> Signed<T> {
        let is_older = false;
        Signed { value, is_older }
    }

    const TICKET: Ticket = Ticket {
        number: 1234,
        drawn: Moment::from_nanos(1_800_000_000_000_000_000),
        predicted: Some(Duration::from_secs(90)),
    };

    #[test]
    fn a_ticket_and_a_session_are_read_as_they_were_signed() {
        let signer = signer(&["a secret of 16 b"], "shop", 7);
        let mut ticket = TICKET;
        for (predicted, bind) in [(TICKET.predicted, &b"192.0.2.1"[..]), (None, b"")] {
            ticket.predicted = predicted;
            let text = signer.ticket(&ticket, bind);
            assert_eq!(text.len(), 43);
            let found = signer.read_ticket(text.as_bytes(), bind);
            assert_eq!(found, Some(current(ticket)));
        }
        let text = signer.session(99, b"x");
        let found = signer.read_session(text.as_bytes(), b"x");
        assert_eq!(found, Some(current(99)));
    }

    #[test]
    fn texts_not_signed_for_this_room_and_visitor_are_invalid() {
        let made = signer(&["a secret of 16 b"], "shop", 7);
        let ticket = made.ticket(&TICKET, b"192.0.2.1");
        // Each differs in one value.
        for (secret, room, life, bind) in [
            ("another of 16 by", "shop", 7, &b"192.0.2.1"[..]),
            ("a secret of 16 b", "shoq", 7, b"192.0.2.1"),
            ("a secret of 16 b", "shop", 8, b"192.0.2.1"),
            ("a secret of 16 b", "shop", 7, b"192.0.2.2"),
            ("a secret of 16 b", "shop", 7, b""),
        ] {
            let other = signer(&[secret], room, life);
            let found = other.read_ticket(ticket.as_bytes(), bind);
            assert_eq!(found, None, "{room} {life}");
        }
        let bind = &b"192.0.2.1"[..];
        let found = made.read_session(ticket.as_bytes(), bind);
        assert_eq!(found, None, "it is no session");
        let session = made.session(1234, bind);
        let found = made.read_ticket(session.as_bytes(), bind);
        assert_eq!(found, None, "it is no ticket");
        // Any change of any character.
        for nth in 0..ticket.len() {
            for other in [b'A', b'z', b'=', b' ', b'%'] {
                let mut edited = ticket.clone().into_bytes();
                if edited[nth] != other {
                    edited[nth] = other;
                    assert_eq!(made.read_ticket(&edited, bind), None);
                }
            }
        }
        let (longer, long) = (format!("{ticket}AAAA"), "A".repeat(10_000));
        for text in ["", "A", &ticket[1..], &longer, &long] {
            assert_eq!(made.read_ticket(text.as_bytes(), bind), None, "{text}");
        }
    }

    #[test]
    fn the_first_secret_signs_and_all_verify() {
        let (old, new) = ("the older secret", "the newer secret");
        let ticket = signer(&[old], "shop", 7).ticket(&TICKET, b"");
        let both = signer(&[new, old], "shop", 7);
        let read = both.read_ticket(ticket.as_bytes(), b"").unwrap();
        assert!(read.is_older);
        let again = both.ticket(&read.value, b"");
        let read = signer(&[new], "shop", 7).read_ticket(again.as_bytes(), b"");
        assert_eq!(read, Some(current(TICKET)));
    }

    #[test]
    fn another_opening_has_another_order() {
        let signer = signer(&["a secret of 16 b"], "shop", 7);
        let keys = [1, 2].map(|at| signer.lottery_keys(Moment::from_nanos(at)));
        assert_ne!(keys[0], keys[1]);
        assert_eq!(keys[0], signer.lottery_keys(Moment::from_nanos(1)));
    }
}
