//! Top-level tables and lists of a file.

use super::jwt::Jwt;
use super::origin::Origin;
use super::prelude::*;
use super::route::Route;
use super::server::Server;
use super::zone::Zone;
use crate::{Log, Redis};

const ORIGINS: Field = Field::of(Form::ByName(NAME, &Form::Table(Origin::TABLE)));
const ZONES: Field = Field::of(Form::ByName(NAME, &Form::Table(Zone::TABLE)));
const JWT: Field = Field::of(Form::ByName(NAME, &Form::Table(Jwt::TABLE)));
const ROUTES: Field = Field::of(Form::List(&Form::Table(Route::TABLE), 0));

table! {
    pub(crate) const FILE {
        include: Field::of(Form::List(&Form::Text, 0)), Now,
            "Files with origins, zones, tokens and routes, such as \"conf.d/*.toml\", relative to this one.";
        server: Field::of(Form::Table(Server::TABLE)), Now,
            "The client side: addresses, threads, timeouts and size limits.";
        origins: ORIGINS, Now, "Backends: each is one or more servers.";
        zones: ZONES, Now, "Sets of buckets: one bucket for each value of a key.";
        jwt: JWT, NextRequest, "How tokens of clients are verified, so that keys can be their claims.";
        redis: Field::of(Form::Table(Redis::TABLE)), Now,
            "Where the buckets are that several gateways share.";
        routes: ROUTES, Now, "Which requests go to which origin, and which zones limit them.";
        log: Field::of(Form::Table(Log::TABLE)), Now, "What is logged, and where.";
    }
}

table! {
    pub(crate) const INCLUDED {
        origins: ORIGINS, Now, "";
        zones: ZONES, Now, "";
        jwt: JWT, NextRequest, "";
        routes: ROUTES, Now, "";
    }
}
