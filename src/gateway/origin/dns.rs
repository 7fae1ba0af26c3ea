//! Cache of the addresses of servers' names, with at most one lookup of a name at a time.
//!
//! The lookup itself is in `resolver`.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::resolver::{Resolve, System};

/// Age below which addresses are used without a new lookup.
const FRESH: Duration = Duration::from_secs(5);
/// Age below which addresses are used while a new lookup runs.
///
/// With older addresses a caller waits for the lookup first, but at most [`STALE_WAIT`].
const STALE: Duration = Duration::from_secs(30);
/// Maximum time for which a caller with old addresses waits for new ones.
const STALE_WAIT: Duration = Duration::from_millis(200);
/// Time until the next lookup of a name after a lookup that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Age of the last request for a name after which the name may be forgotten.
///
/// It is forgotten when another name is added.
const FORGOTTEN: Duration = Duration::from_secs(3600);

type Addresses = Arc<[SocketAddr]>;

/// Addresses of names, shared by all workers.
///
/// Only one lookup of a name runs at a time, however many callers there are and however long it
/// takes. If a lookup fails, the previous addresses stay in use.
#[derive(Debug, Default)]
pub(super) struct Names<R = System>(Arc<Shared<R>>);

/// State that all workers share.
#[derive(Debug, Default)]
struct Shared<R> {
    resolver: R,
    names: Mutex<HashMap<String, Name>>,
}

/// Error: a name that was not resolved, and the reason.
#[derive(Debug, Error)]
#[error("looking up {name}: {why}")]
pub(super) struct LookupError {
    name: String,
    why: String,
}

/// Known state of one name.
#[derive(Debug, Default)]
struct Name {
    /// Instant at which the addresses were last requested.
    requested: Option<Instant>,
    /// Addresses of the last successful lookup, and its instant.
    found: Option<(Addresses, Instant)>,
    /// Error of the last lookup, and its instant; `None`: it did not fail.
    failed: Option<(String, Instant)>,
    /// Closes when the current lookup ends.
    lookup: Option<watch::Receiver<()>>,
}

impl<R: Resolve> Names<R> {
    /// Returns the addresses of `name`, best first, and at least one.
    ///
    /// Their port has no meaning.
    ///
    /// # Errors
    ///
    /// Returns an error if the name has no address, or if the lookup failed.
    pub(super) async fn addresses(&self, name: &str) -> io::Result<Addresses> {
        if let Some((lookup, limit)) = self.start_if_due(name, Instant::now()) {
            // If the lookup takes too long, the old addresses are used.
            let _late = timeout(limit, wait_for_end(lookup)).await;
        }
        self.0.known(name)
    }

    /// Looks up `name` now, or waits for a lookup that runs, and returns the addresses.
    ///
    /// # Errors
    ///
    /// As [`addresses`](Self::addresses).
    pub(super) async fn refresh(&self, name: &str) -> io::Result<Addresses> {
        let lookup = {
            let mut names = self.0.names();
            let known = names.entry(name.to_owned()).or_default();
            known.requested = Some(Instant::now());
            self.running_lookup(known, name)
        };
        wait_for_end(lookup).await;
        self.0.known(name)
    }

    /// Returns the running lookup, or starts one in the background. The receiver closes at its end.
    fn running_lookup(&self, known: &mut Name, name: &str) -> watch::Receiver<()> {
        // A lookup whose task was dropped with its worker has also ended.
        let is_running = |lookup: &&watch::Receiver<()>| lookup.has_changed().is_ok();
        if let Some(lookup) = known.lookup.as_ref().filter(is_running) {
            return lookup.clone();
        }
        let (end, ended) = watch::channel(());
        let (shared, name) = (Arc::clone(&self.0), name.to_owned());
        tokio::spawn(async move {
            let found = shared.resolver.resolve(name.clone()).await;
            shared.note(&name, found);
            drop(end);
        });
        known.lookup.insert(ended).clone()
    }

    /// Starts a lookup if one is due.
    ///
    /// Returns the lookup for which the caller must wait, and the longest wait; `None`: no wait.
    fn start_if_due(&self, name: &str, now: Instant) -> Option<(watch::Receiver<()>, Duration)> {
        let mut names = self.0.names();
        if !names.contains_key(name) {
            // A name that has not been requested for long is no longer in the file.
            names.retain(|_, known| known.requested.is_some_and(|at| now - at < FORGOTTEN));
        }
        let known = names.entry(name.to_owned()).or_default();
        known.requested = Some(now);
        let age = known.found.as_ref().map(|(_, at)| now - *at);
        let since_failure = known.failed.as_ref().map(|(_, at)| now - *at);
        if age.is_some_and(|it| it < FRESH) || since_failure.is_some_and(|it| it < PAUSE) {
            return None;
        }
        let lookup = self.running_lookup(known, name);
        match age {
            Some(age) if age < STALE => None,
            Some(_) => Some((lookup, STALE_WAIT)),
            None => Some((lookup, Duration::MAX)),
        }
    }
}

/// Waits until a lookup ends.
async fn wait_for_end(mut lookup: watch::Receiver<()>) {
    while lookup.changed().await.is_ok() {}
}

impl<R> Shared<R> {
    fn names(&self) -> MutexGuard<'_, HashMap<String, Name>> {
        // A panic cannot leave the map inconsistent.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the known addresses, whatever their age.
    fn known(&self, name: &str) -> io::Result<Addresses> {
        let names = self.names();
        let known = names.get(name);
        match known.and_then(|known| known.found.as_ref()) {
            Some((addresses, _)) => Ok(Arc::clone(addresses)),
            None => Err(known.map_or_else(|| Name::default().error(name), |it| it.error(name))),
        }
    }

    /// Records the result of a lookup.
    fn note(&self, name: &str, found: io::Result<Vec<SocketAddr>>) {
        let now = Instant::now();
        let mut names = self.names();
        let known = names.entry(name.to_owned()).or_default();
        let error = match found {
            Ok(addresses) if !addresses.is_empty() => {
                if known.failed.take().is_some() {
                    tracing::info!(name, "the name resolves again");
                }
                known.found = Some((addresses.into(), now));
                return;
            }
            Ok(_) => "it has no addresses".to_owned(),
            Err(error) => error.to_string(),
        };
        // Logged once until the name resolves again. Without old addresses, the failed requests
        // report the error themselves.
        if known.failed.is_none() && known.found.is_some() {
            tracing::warn!(
                name,
                error,
                "the name does not resolve; its last addresses stay in use"
            );
        }
        known.failed = Some((error, now));
    }
}

impl Name {
    /// Returns the error of the last lookup.
    fn error(&self, name: &str) -> io::Error {
        let why = self.failed.as_ref().map_or("interrupted", |(why, _)| why);
        io::Error::other(LookupError {
            name: name.to_owned(),
            why: why.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    /// Error for which a lookup never ends.
    const HANGS: &str = "hangs";

    /// Resolver that returns one of `answers` for each lookup in turn, after a delay.
    #[derive(Default)]
    struct Script {
        delay: Duration,
        answers: Vec<Result<&'static str, &'static str>>,
        lookups: AtomicUsize,
    }

    impl Resolve for Script {
        async fn resolve(&self, _: String) -> io::Result<Vec<SocketAddr>> {
            let nth = self.lookups.fetch_add(1, Ordering::SeqCst);
            sleep(self.delay).await;
            let address = |address: &str| SocketAddr::new(address.parse().unwrap(), 0);
            match self.answers.get(nth).copied().unwrap_or(Err("no more")) {
                Ok(found) => Ok(found.split_terminator(' ').map(address).collect()),
                Err(HANGS) => pending().await,
                Err(error) => Err(io::Error::other(error)),
            }
        }
    }

    fn names(delay: Duration, answers: &[Result<&'static str, &'static str>]) -> Names<Script> {
        let mut shared = Shared::<Script>::default();
        shared.resolver.delay = delay;
        shared.resolver.answers = answers.to_vec();
        Names(Arc::new(shared))
    }

    fn lookups(names: &Names<Script>) -> usize {
        names.0.resolver.lookups.load(Ordering::SeqCst)
    }

    /// Returns the first address of the name, or the error.
    async fn first_address(names: &Names<Script>) -> String {
        let found = names.addresses("app").await;
        found.map_or_else(|error| error.to_string(), |found| found[0].ip().to_string())
    }

    const QUICK: Duration = Duration::from_millis(1);

    /// Waits until a lookup in the background has ended.
    async fn end_lookup() {
        sleep(QUICK * 2).await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_lookup_serves_all_concurrent_and_recent_callers() {
        let names = names(Duration::from_secs(3), &[Ok("10.0.0.1")]);
        let callers = (0..100).map(|_| first_address(&names));
        for address in futures_util::future::join_all(callers).await {
            assert_eq!(address, "10.0.0.1");
        }
        advance(FRESH.saturating_sub(QUICK)).await;
        assert_eq!(first_address(&names).await, "10.0.0.1");
        assert_eq!(lookups(&names), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_record_is_followed_without_a_wait_unless_the_name_was_unused_for_long() {
        for (age, at_once, wait) in [
            (FRESH, "10.0.0.1", Duration::ZERO),
            (STALE, "10.0.0.2", QUICK),
        ] {
            let names = names(QUICK, &[Ok("10.0.0.1"), Ok("10.0.0.2")]);
            assert_eq!(first_address(&names).await, "10.0.0.1");
            advance(age).await;
            let began = Instant::now();
            assert_eq!(first_address(&names).await, at_once);
            assert_eq!(began.elapsed(), wait);
            end_lookup().await;
            assert_eq!(first_address(&names).await, "10.0.0.2");
            assert_eq!(lookups(&names), 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refresh_returns_new_addresses_or_the_old_ones_if_it_fails() {
        let names = names(QUICK, &[Ok("10.0.0.1"), Ok("10.0.0.2"), Err("down")]);
        for (nth, expected) in [(1, "10.0.0.1"), (2, "10.0.0.2"), (3, "10.0.0.2")] {
            let found = names.refresh("app").await.unwrap();
            assert_eq!(found[0].ip().to_string(), expected);
            assert_eq!(lookups(&names), nth);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_resolver_delays_callers_with_old_addresses_only_briefly() {
        let names = names(QUICK, &[Ok("10.0.0.1"), Err(HANGS)]);
        assert_eq!(first_address(&names).await, "10.0.0.1");
        advance(STALE).await;
        for _ in 0..3 {
            let began = Instant::now();
            assert_eq!(first_address(&names).await, "10.0.0.1");
            assert!(began.elapsed() <= STALE_WAIT + QUICK);
        }
        assert_eq!(lookups(&names), 2, "one lookup hangs, not three");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_lookup_keeps_the_old_addresses_and_is_not_repeated_at_once() {
        let answers = [Ok("10.0.0.1"), Err("down"), Ok(""), Ok("10.0.0.2")];
        let names = names(QUICK, &answers);
        assert_eq!(first_address(&names).await, "10.0.0.1");
        advance(FRESH).await;
        for expected_lookups in [2, 2, 3, 3, 4] {
            assert_eq!(first_address(&names).await, "10.0.0.1");
            end_lookup().await;
            assert_eq!(lookups(&names), expected_lookups);
            advance(PAUSE / 2).await;
        }
        assert_eq!(first_address(&names).await, "10.0.0.2");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unresolved_name_reports_its_error_and_is_retried() {
        let names = names(QUICK, &[Err("no such host"), Ok("::1")]);
        for _ in 0..10 {
            assert_eq!(first_address(&names).await, "looking up app: no such host");
        }
        assert_eq!(lookups(&names), 1);
        advance(PAUSE).await;
        assert_eq!(first_address(&names).await, "::1");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unused_name_is_forgotten_when_others_are_added() {
        let names = names(QUICK, &[Ok("10.0.0.1"); 40]);
        for nth in 0..10 {
            names.addresses(&format!("old{nth}")).await.unwrap();
        }
        for nth in 0..10 {
            advance(FORGOTTEN / 8).await;
            assert_eq!(first_address(&names).await, "10.0.0.1");
            names.addresses(&format!("new{nth}")).await.unwrap();
        }
        // The name in use, and the names of the last hour.
        assert_eq!(names.0.names().len(), 1 + 8);
    }
}
