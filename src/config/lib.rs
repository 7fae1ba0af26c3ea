//! The configuration of drip: from `gateway.toml` to checked settings.
//!
//! - [`load`] and [`parse`] read the file and report all of its problems at once. Each [`Problem`]
//!   has a line and column, the value found, and the expected value. A syntax error is reported
//!   alone.
//! - [`Settings`] are the result. The rest of the gateway uses them without further checks.
//! - [`show`] writes settings back as a file, with all defaults.
//! - [`schema()`] is the JSON Schema of a file.
//! - [`changes`] lists the changes of a reload, and [`History`] keeps them. [`FileState`] has the
//!   last change, and the problems of a file that cannot be used.
//! - [`Watcher`] reports changes of the file.
//! - [`check_state_file`] is about another file: the one in which the gateway saves its levels.

mod admin_address;
mod admin_tokens;
mod changes;
mod fields;
mod file;
mod history;
pub mod jwt;
mod key;
mod mask;
mod named_file;
mod node;
mod pattern;
mod printable;
mod problem;
pub mod redis;
mod regular_file;
mod reload_state;
mod report;
mod schema;
mod settings;
mod show;
mod size;
mod spelling;
mod stamp;
mod state_file;
mod suggest;
mod table_settings;
mod tables;
pub mod target;
pub mod tls;
mod toml_string;
mod watch;

pub use admin_address::AdminAddress;
pub use admin_tokens::{AdminTokens, TokenRole, has_admin_token};
pub use changes::{LostKeys, changes, lost_keys};
pub use file::{FileField, admin_of_broken, at_fields, load, parse, parse_after, read};
pub use history::{Change, ChangedBy, History, in_one_line};
pub use key::{KeyError, KeyTemplate, MAX_KEY_SIZE, Part, Variable};
pub use mask::{mask_key, short_key};
pub use named_file::{FileKind, NamedFile};
pub use printable::{is_printable, put_escaped, put_printable};
pub use problem::{DEFAULT_FILE, LoadError, Problem, Problems};
pub use regular_file::read_regular;
pub use reload_state::{BrokenFile, FileState, LastChange};
pub use schema::schema;
pub use settings::{
    ByteRegex, ClientNetworks, HostPattern, Listen, ListenAddress, ListenService, Matcher,
    MatcherInput, MatcherValue, Media, Networks, OpeningTime, Page, PageChoice, PageContent,
    PagePart, PageValue, Pages, PathPattern, Peers, Plans, RequestInputs, RouteIndex, Settings,
    Statuses, embedded_ipv4, has_client,
};
pub use show::show;
pub use size::{ByteRate, show_size};
pub use spelling::{is_field, is_same_field, is_same_variable};
pub use state_file::{STATE_MAGIC, StateFileError, check_state_file};
pub use tables::backoff::{Backoff, BackoffMode, Trouble};
pub use tables::balance::Balance;
pub use tables::client_auth::ClientAuth;
pub use tables::collapse::Collapse;
pub use tables::cors::Cors;
pub use tables::cost::{BodyCost, CostRule, HeaderCost, LearnedCost, ResponseCost};
pub use tables::fail_on::FailOn;
pub use tables::header_fields::{FieldEdit, FieldEdits};
pub use tables::health::Health;
pub use tables::jwt::Jwt;
pub use tables::kinds::Words;
pub use tables::limit::RouteLimit;
pub use tables::log::{Access, Format, Level, Log};
pub use tables::origin::{HostRule, Http2, OnClientDisconnect, Origin, Resolve};
pub use tables::origin_server::OriginServer;
pub use tables::origin_tls::{ClientIdentity, OriginTls};
pub use tables::plan::Plan;
pub use tables::redis::{OnStoreFailure, Redis, StoreKind};
pub use tables::rewrite::PathRewrite;
pub use tables::room::{Draw, Room, RoomSecret, SameSite};
pub use tables::route::{RatelimitHeader, Route, RouteAction};
pub use tables::server::{ForwardedHeader, MetricsAccess, Server};
pub use tables::tls::{CertPair, Tls};
pub use tables::url::{Host, Scheme, ServerUrl};
pub use tables::zone::{Zone, client_network, cut_ipv6};
pub use toml_string::{toml_string, toml_text};
pub use watch::Watcher;
