//! The side to the clients: their connections, from the first byte to the last.
//!
//! | module | what it is |
//! |---|---|
//! | `http1`, `http2` | a connection over either version |
//! | `stream` | the client as a request's service uses it, over either version |
//! | `tls`, `certificates`, `socket` | encrypted and plain connections |
//! | `rewound` | a connection whose first bytes were read already |
//! | `context`, `peer`, `timeouts`, `stop`, `error_response` | parts that the others use |

mod certificates;
mod context;
mod error_response;
mod http1;
mod http2;
mod peer;
mod rewound;
mod socket;
mod stop;
mod stream;
mod timeouts;
mod tls;

pub use certificates::{CertificateError, Certificates};
pub use context::ConnectionContext;
pub use http1::serve;
pub use peer::Peer;
pub use socket::Socket;
pub use stop::StopSignal;
pub use stream::{
    Aborted, ClientError, ClientStream, EachField, RequestService, Response, unless_gone,
};
pub use timeouts::Timeouts;
pub use tls::TlsServer;
