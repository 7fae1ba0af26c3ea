//! Connections to a simulated Redis, for tests: a network of this thread in place of the real one.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use redis::{Cmd, RedisResult, Value};

use super::Url;

/// Network with a store, in place of the machine's network.
pub(crate) trait Network {
    /// Connects to the store at `url`.
    fn dial(&self, url: &Url) -> LocalBoxFuture<'static, RedisResult<Connection>>;
}

/// Network without any server.
pub(crate) struct NoStore;

impl Network for NoStore {
    fn dial(&self, _: &Url) -> LocalBoxFuture<'static, RedisResult<Connection>> {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        std::future::ready(Err(refused.into())).boxed_local()
    }
}

/// Connection over a [`Network`].
pub(crate) trait Wire {
    /// Sends all commands at once. Returns a reply or an error for each.
    fn send(
        &self,
        commands: Vec<Cmd>,
    ) -> LocalBoxFuture<'static, RedisResult<Vec<RedisResult<Value>>>>;
}

/// Connection that its users share.
pub(crate) type Connection = Rc<dyn Wire>;

thread_local! {
    static NETWORK: RefCell<Option<Rc<dyn Network>>> = const { RefCell::new(None) };
}

/// Sets the network of this thread, until the guard is dropped.
pub(crate) fn set_network(network: Rc<dyn Network>) -> Guard {
    NETWORK.set(Some(network));
    Guard(())
}

/// Guard of a simulated network, which ends when this is dropped.
pub(crate) struct Guard(());

impl Drop for Guard {
    fn drop(&mut self) {
        NETWORK.set(None);
    }
}

/// Connects over the simulated network of this thread, if there is one.
pub(super) fn dial(url: &Url) -> Option<LocalBoxFuture<'static, RedisResult<Connection>>> {
    NETWORK.with_borrow(|network| Some(network.as_ref()?.dial(url)))
}
