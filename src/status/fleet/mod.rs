//! One picture of several gateways, made of what each says of itself. No clock, no I/O.
//!
//! | file | what it is |
//! |---|---|
//! | `reading` | what was read of one gateway |
//! | `clock` | how far the clock of a gateway is ahead |
//! | `settings` | the settings that must be the same at all gateways |
//! | `member` | a gateway, and what was last read of it |
//! | `members` | all of them |
//! | `pace` | what each gateway has sent through its gates in the last seconds |
//! | `picture` | sums over the gateways, and what each has of them |
//! | `keys` | keys that are limited anywhere |
//! | `rules` | the headline over all gateways |

mod clock;
mod keys;
mod member;
mod members;
mod pace;
mod picture;
mod reading;
mod rules;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use self::clock::ClockOffset;
pub(crate) use self::members::Members;
pub(crate) use self::reading::{Reading, Unread, UnreadKind};
pub(crate) use self::settings::SharedSettings;
