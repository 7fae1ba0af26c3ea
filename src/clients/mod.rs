//! The leg to the clients: their connections, from the first byte to the last, one request of each at a time.
//!
//! hyper speaks HTTP here, on the workers of actix-web's server, and not actix-web itself (its HTTP/1 side, actix-http
//! 3.20, was measured and read): it decodes requests while others wait before them on the connection, so that 10,000
//! pipelined ones took 27 MB and a whole core, and answers of pipelined GET and HEAD were framed for one another; it has
//! no time limit for the second head of a connection; and of a client that leaves with a body half sent it knows nothing.

mod answering;
mod certificates;
mod exchange;
mod framing;
mod gate;
mod http1;
mod http2;
mod last_words;
mod patience;
mod peer;
mod socket;
mod tls;

pub use answering::{Answering, Visit};
pub use certificates::{CertificateError, Certificates};
pub use http1::serve;
pub use patience::Patience;
pub use peer::Peer;
pub use socket::Socket;
pub use tls::Encryption;
