//! The operations that a batcher carries to the store.

use std::rc::Rc;

use actix::Recipient;

use super::{Decision, NoReply, Placed, Retuned, StoreLink, StoreReply};
use crate::actors::messages::Join;
use crate::limit::{Limit, Moment};
use crate::store::{self, Charge, Refund, Retune};

/// A join for the store to decide.
pub(super) struct Ask {
    pub(super) zone: Rc<StoreLink>,
    pub(super) key: Vec<u8>,
    pub(super) limit: Limit,
    /// When the request joined.
    pub(super) since: Moment,
    pub(super) back: Back,
}

/// Receives the store's decision.
pub(super) enum Back {
    Join(Join, Recipient<StoreReply>),
    /// For a waiter with this `delay`, which needs a new time.
    Place(u32, Recipient<Placed>),
}

pub(super) struct GivenBack {
    pub(super) zone: Rc<StoreLink>,
    pub(super) key: Vec<u8>,
    pub(super) charge: Charge,
}

pub(super) struct Retuning {
    pub(super) zone: Rc<StoreLink>,
    pub(super) key: Vec<u8>,
    pub(super) back: Recipient<Retuned>,
}

impl Ask {
    pub(super) fn tell(self, decision: Result<Decision, NoReply>) {
        let since = self.since;
        match self.back {
            Back::Join(join, back) => back.do_send(StoreReply {
                join,
                since,
                decision,
            }),
            Back::Place(delay, back) => back.do_send(Placed { delay, decision }),
        }
    }

    pub(super) fn to_store(&self) -> store::Join<'_> {
        store::Join {
            key: &self.key,
            algorithm: self.zone.algorithm,
            pace: &self.zone.pace,
            limit: self.limit,
            at: None,
        }
    }
}

impl GivenBack {
    pub(super) fn to_store(&self) -> Refund<'_> {
        Refund {
            key: &self.key,
            algorithm: self.zone.algorithm,
            pace: &self.zone.pace,
            charge: self.charge,
            at: None,
        }
    }
}

impl Retuning {
    pub(super) fn to_store(&self) -> Retune<'_> {
        Retune {
            key: &self.key,
            pace: &self.zone.pace,
        }
    }
}
