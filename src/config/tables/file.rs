//! Top-level fields of the configuration file, and of a file that it includes.
//!
//! Each is a table or a list that another module defines. In `table!`, an entry is a field of the
//! file (see `table_settings`).

use super::jwt::Jwt;
use super::origin::Origin;
use super::prelude::*;
use super::route::Route;
use super::server::Server;
use super::zone::Zone;
use crate::{Log, Redis};

/// Field `origins`.
const ORIGINS: Field = Field::of_form(Form::ByName(NAME, &Form::Table(Origin::TABLE)));
/// Field `zones`.
const ZONES: Field = Field::of_form(Form::ByName(NAME, &Form::Table(Zone::TABLE)));
/// Field `jwt`.
const JWT: Field = Field::of_form(Form::ByName(NAME, &Form::Table(Jwt::TABLE)));
/// Field `routes`.
const ROUTES: Field = Field::of_form(Form::List(&Form::Table(Route::TABLE), 0));

// Fields of the configuration file.
table! {
    pub(crate) const FILE {
        include: Field::of_form(Form::List(&Form::Text, 0)), Now,
            "Files with origins, zones, tokens and routes, such as \"conf.d/*.toml\", relative to this one.";
        server: Field::of_form(Form::Table(Server::TABLE)), Now,
            "The client side: addresses, threads, timeouts and size limits.";
        origins: ORIGINS, Now, "Backends: each is one or more servers.";
        zones: ZONES, Now, "Sets of buckets: one bucket for each value of a key.";
        jwt: JWT, NextRequest, "How tokens of clients are verified, so that keys can be their claims.";
        redis: Field::of_form(Form::Table(Redis::TABLE)), Now,
            "Where the buckets are that several gateways share.";
        routes: ROUTES, Now, "Which requests go to which origin, and which zones limit them.";
        log: Field::of_form(Form::Table(Log::TABLE)), Now, "What is logged, and where.";
    }
}

// Fields of a file that it includes.
table! {
    pub(crate) const INCLUDED {
        origins: ORIGINS, Now, "";
        zones: ZONES, Now, "";
        jwt: JWT, NextRequest, "";
        routes: ROUTES, Now, "";
    }
}
