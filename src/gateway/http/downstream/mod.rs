//! The client side: connections of clients, from the first byte to the last.
//!
//! | module | what it is |
//! |---|---|
//! | `http1`, `http2` | a connection over either version |
//! | `stream` | interface between a connection and a request's service, for both versions |
//! | `tls`, `certificates` | encrypted connections, and their reloaded certificates |
//! | `client_trust`, `pinned_clients` | verification of client certificates |
//! | `certificate_facts` | facts read from a certificate |
//! | `socket` | operations of plain and encrypted sockets |
//! | `proxy_protocol` | the header with which a proxy names its client |
//! | `context`, `peer`, `timeouts`, `stop` | parts that the others use |

mod certificate_facts;
mod certificates;
mod client_trust;
mod context;
mod http1;
mod http2;
mod peer;
mod pinned_clients;
mod proxy_protocol;
mod socket;
mod stop;
mod stream;
mod timeouts;
mod tls;

pub use certificate_facts::ClientCertificate;
pub use certificates::{Certificates, TlsFileError};
pub use client_trust::check_client_trust;
pub use context::ConnectionContext;
pub use http1::serve;
pub use peer::{Peer, PeerFacts};
pub use proxy_protocol::{
    InvalidHeader, MAX as MAX_PROXY_HEADER, ProxyHeader, ProxyHeaderError,
    parse as parse_proxy_header, read_proxy_header,
};
pub use socket::{Peek, Socket, Wait};
pub use stop::StopSignal;
pub use stream::{
    Aborted, ClientError, ClientStream, EachField, OriginHead, Polled, RequestService, Response,
    Tunnel, unless_disconnected,
};
pub use timeouts::Timeouts;
pub use tls::{HandshakeError, TlsServer};
