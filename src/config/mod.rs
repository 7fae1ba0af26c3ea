//! From `gateway.toml` to settings that cannot be wrong.
//!
//! - [`Settings`] are what the rest of the gateway goes by, and never checks again.

mod key;
mod settings;

pub use key::{KeyError, KeyTemplate, Part, Variable};
pub use settings::{
    Access, Dialects, Format, ForwardedHeader, Level, Listen, Log, Origin, PathPattern, Route,
    RouteLimit, Server, ServerUrl, Settings, Zone,
};
