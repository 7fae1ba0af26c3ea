//! HTTP/1 messages as bytes: where a head ends, what its fields are, how its body is framed, and how bodies pass.
//!
//! A head is parsed once, where it was read. What is kept of it are its bytes and a table of ranges
//! ([`fields`]), which routing, keys and forwarding read. Both legs share one strict rule for framing
//! ([`framing`]), one decoder and one encoder of bodies ([`body`]), and one pool of buffers a worker ([`buffer`]).

pub mod body;
pub mod buffer;
pub mod chunks;
pub mod date;
pub mod fields;
pub mod framing;
pub mod request;
pub mod response;
pub mod sender;

pub use body::{BodyDecoder, BodyEncoder, BodyError};
pub use buffer::Buffer;
pub use fields::{Field, FieldName, Fields, Trailers};
pub use framing::BodyLength;
pub use request::{BadRequest, RequestHead, Version};
pub use response::{InvalidResponse, ResponseHead};
pub use sender::Sender;
