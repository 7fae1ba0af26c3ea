//! HTTP/1 messages as bytes: heads, fields, framing and bodies.
//!
//! A head is parsed once, in the buffer that it was read into. The gateway keeps its bytes and a
//! table of ranges ([`fields`]). Routing, keys and forwarding read that table. Both sides,
//! downstream and upstream, share one strict rule for framing ([`framing`]), one decoder and one
//! encoder for bodies ([`body`]), and one pool of buffers per worker ([`buffer`]).

pub mod body;
pub mod body_queue;
pub mod buffer;
pub mod chunks;
pub mod date;
pub mod error;
pub mod field_name;
pub mod fields;
pub mod framing;
pub mod login;
pub mod request;
pub mod response;
pub mod sender;
#[cfg(test)]
pub(crate) mod test_heads;
#[cfg(test)]
mod test_writer;
pub mod trailers;
pub mod version;

pub use body::{BodyDecoder, BodyEncoder, BodyError};
pub(crate) use body::{put_field, put_number_field};
pub use body_queue::{BodyMemory, BodyQueue};
pub use buffer::{Buffer, READ_SIZE};
pub use date::with_date;
pub use error::{BadRequest, InvalidResponse};
pub use field_name::FieldName;
pub(crate) use field_name::{is_like, strip_start};
pub use fields::{Field, FieldTable, Fields, Put};
pub(crate) use fields::{decimal, only, put_number, without_blanks};
pub use framing::BodyLength;
pub(crate) use login::logs_in_connection;
pub use request::RequestHead;
pub use response::ResponseHead;
pub use sender::{Sender, Then};
pub use trailers::Trailers;
pub use version::Version;
