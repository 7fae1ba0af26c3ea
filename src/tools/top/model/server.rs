//! A server of an origin, as it is told.

use crate::status::views::Server;

/// Whether a server gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tools::top) enum ServerState {
    Asked,
    Failing,
    Out,
}

impl ServerState {
    pub(in crate::tools::top) fn of(server: &Server) -> Self {
        match server.state.as_str() {
            "asked" => Self::Asked,
            "failing" => Self::Failing,
            "out" => Self::Out,
            // An older gateway sends no state.
            _ if server.healthy => Self::Asked,
            _ => Self::Out,
        }
    }

    pub(in crate::tools::top) fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Failing => "failing",
            Self::Out => "out",
        }
    }
}

/// Whether there is something to tell of why a server is out or failing.
pub(super) fn has_trouble(server: &Server) -> bool {
    let check = server.last_check.as_ref();
    let told = server.out.is_some() || server.last_failure.is_some();
    ServerState::of(server) != ServerState::Asked && (told || check.is_some_and(|it| !it.healthy))
}
