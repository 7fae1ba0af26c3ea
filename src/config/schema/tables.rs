//! The fields of each table.

use super::form::{
    COST_FORM, DURATION_OR_NONE_FORM, HEADER_NAME_FORM, NOT_EMPTY_FORM, SIZE_ABOVE_ZERO_FORM,
};
use super::{Field, Form, Table};
use crate::config::of_table::OfTable;
use crate::config::{Log, Origin, RatelimitHeaders, Redis, Server, Zone};

const U32: u64 = u32::MAX as u64;

/// The whole file.
pub(in crate::config) const FILE: Table = Table {
    fields: &[
        Field::new(
            "include",
            Form::AnyList(&Form::Text, 0),
            "Files with origins, zones and routes, such as \"conf.d/*.toml\", relative to this one.",
        ),
        Field::new(
            "server",
            Form::Table(Server::TABLE),
            "The client side: addresses, threads, timeouts and size limits.",
        ),
        Field::new(
            "origins",
            Form::Named(Origin::TABLE),
            "Backends: each is one or more servers.",
        ),
        Field::new(
            "zones",
            Form::Named(Zone::TABLE),
            "Sets of buckets: one bucket for each value of a key.",
        ),
        Field::new(
            "redis",
            Form::Table(Redis::TABLE),
            "Where the buckets are that several gateways share.",
        ),
        Field::new(
            "routes",
            Form::AnyList(&Form::Table(ROUTE), 0),
            "Which requests go to which origin, and which zones limit them.",
        ),
        Field::new("log", Form::Table(Log::TABLE), "What is logged, and where."),
    ],
};

/// A file that another one includes.
pub(in crate::config) const INCLUDED: Table = Table {
    fields: &[
        Field::new("origins", Form::Named(Origin::TABLE), ""),
        Field::new("zones", Form::Named(Zone::TABLE), ""),
        Field::new("routes", Form::AnyList(&Form::Table(ROUTE), 0), ""),
    ],
};

const COSTS: Form = Form::OneOf(&[
    COST_FORM,
    Form::Table(COST_HEADER),
    Form::Table(COST_BODY),
    Form::Table(COST_RESPONSE),
]);

pub(in crate::config) const ROUTE: Table = Table {
    fields: &[
        Field::new(
            "path",
            Form::Like("/[^?#]*|=\\s*/[^?#]*|regex:[^\\s](.|\\n)*"),
            "A prefix, compared byte by byte; \"= /exact\" for one path; \"regex:^/u/[0-9]+$\" for a regular expression.",
        )
        .required(""),
        Field::new(
            "host",
            Form::Like("[0-9A-Za-z._-]+|\\[[0-9a-fA-F:.]+\\]"),
            "Only requests for this host.",
        ),
        Field::new(
            "methods",
            Form::List(&Form::Like("[0-9A-Z!#$%&'*+.^_`|~-]+"), 0),
            "Only these methods.",
        )
        .or("[]"),
        Field::new(
            "origin",
            Form::Text,
            "Where the requests go: a name from [origins]. Required without refuse.",
        ),
        Field::new(
            "refuse",
            Form::Whole(400, 599),
            "Answer each request with this status instead of sending it to an origin.",
        ),
        Field::new(
            "strip_prefix",
            Form::Like("/[^?#]*"),
            "Removed from the beginning of the path that the origin gets.",
        ),
        Field::new(
            "add_prefix",
            Form::Like("/([0-9A-Za-z._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"),
            "Put before the path that the origin gets, after strip_prefix is removed.",
        ),
        Field::new(
            "request_headers",
            Form::HeaderFields,
            "Fields that the origin gets instead of the client's; false removes one.",
        )
        .or("{}"),
        Field::new(
            "response_headers",
            Form::HeaderFields,
            "Fields of all responses, instead of the origin's; false removes one.",
        )
        .or("{}"),
        Field::new(
            "answer_headers",
            Form::HeaderFields,
            "Fields of the responses that drip makes itself, such as a rejection.",
        )
        .or("{}"),
        Field::new(
            "class",
            NOT_EMPTY_FORM,
            "Class of these requests at the gate. Default: the origin's first class.",
        ),
        Field::new(
            "limits",
            Form::AnyList(&Form::Table(LIMIT), 0),
            "The zones that limit these requests; without limits a route only forwards.",
        )
        .or("[]"),
        Field::new("cost", COSTS, "What a request counts for.").or("1"),
        Field::new(
            "refund",
            Form::List(&Form::Like("[2-5][0-9][0-9]|[2-5]xx"), 0),
            "A request that is answered so is not charged in its zones after all.",
        )
        .or("[]"),
        Field::new(
            "max_wait",
            DURATION_OR_NONE_FORM,
            "A request that would wait longer is rejected on arrival.",
        )
        .or("\"none\""),
        Field::new(
            "dry_run",
            Form::Boolean,
            "Decide, count and log, but let every request pass its zones at once.",
        )
        .or("false"),
        Field::new(
            "reject_status",
            Form::Whole(400, 599),
            "Status of a rejection.",
        )
        .or("429"),
        Field::new("reject_body", Form::Text, "Body of a rejection.")
            .or("\"Too many requests\\n\""),
        Field::new(
            "headers",
            Form::List(&Form::Word(|| RatelimitHeaders::NAMES.to_vec()), 0),
            "Fields that tell the client about its limits.",
        )
        .or("[\"x-ratelimit\"]"),
    ],
};

pub(in crate::config) const LIMIT: Table = Table {
    fields: &[
        Field::new("zone", Form::Text, "The zone that counts the request.").required(""),
        Field::new(
            "burst",
            Form::Whole(0, U32),
            "Leaky bucket: how many requests above the rate are held. Token bucket: its capacity.",
        ),
        Field::new(
            "delay",
            Form::Whole(0, U32),
            "How many of these pass at once before others wait; at most burst.",
        ),
        Field::new("nodelay", Form::Boolean, "All of burst passes at once."),
        Field::new(
            "in_flight",
            Form::Whole(1, U32),
            "How many requests of one key may run at the same time.",
        ),
    ],
};

pub(in crate::config) const COST_HEADER: Table = Table {
    fields: &[
        Field::new(
            "header",
            HEADER_NAME_FORM,
            "What this field says, if a trusted proxy sends it.",
        )
        .required(""),
        Field::new("max", COST_FORM, "What counts for any higher number.").required(""),
        Field::new("default", COST_FORM, "What counts otherwise.").or("1"),
    ],
};

pub(in crate::config) const COST_BODY: Table = Table {
    fields: &[
        Field::new(
            "body_per",
            SIZE_ABOVE_ZERO_FORM,
            "One, and one more for each whole piece of this size.",
        )
        .required(""),
        Field::new("max", COST_FORM, "What counts for any longer body.").required(""),
    ],
};

pub(in crate::config) const COST_RESPONSE: Table = Table {
    fields: &[
        Field::new(
            "response_header",
            HEADER_NAME_FORM,
            "What this field of the response says.",
        )
        .required(""),
        Field::new("max", COST_FORM, "What counts for any higher number.").required(""),
        Field::new("estimate", COST_FORM, "What counts until then.").or("1"),
    ],
};
