//! The tables and lists of a file.

use super::origin::Origin;
use super::route::Route;
use super::server::Server;
use super::zone::Zone;
use crate::config::of_table::OfTable;
use crate::config::schema::{Effect, Field, Form, Table};
use crate::config::{Log, Redis};

const ORIGINS: Field = table(
    "origins",
    Form::Named(Origin::TABLE),
    "Backends: each is one or more servers.",
);
const ZONES: Field = table(
    "zones",
    Form::Named(Zone::TABLE),
    "Sets of buckets: one bucket for each value of a key.",
);
const ROUTES: Field = table(
    "routes",
    Form::AnyList(&Form::Table(Route::TABLE), 0),
    "Which requests go to which origin, and which zones limit them.",
);

/// The whole file.
pub(in crate::config) const FILE: Table = Table {
    fields: &[
        table(
            "include",
            Form::AnyList(&Form::Text, 0),
            "Files with origins, zones and routes, such as \"conf.d/*.toml\", relative to this one.",
        ),
        table(
            "server",
            Form::Table(Server::TABLE),
            "The client side: addresses, threads, timeouts and size limits.",
        ),
        ORIGINS,
        ZONES,
        table(
            "redis",
            Form::Table(Redis::TABLE),
            "Where the buckets are that several gateways share.",
        ),
        ROUTES,
        table("log", Form::Table(Log::TABLE), "What is logged, and where."),
    ],
};

/// A file that another one includes.
pub(in crate::config) const INCLUDED: Table = Table {
    fields: &[ORIGINS, ZONES, ROUTES],
};

const fn table(name: &'static str, form: Form, about: &'static str) -> Field {
    Field::of(form).described(name, Effect::Now, about)
}
