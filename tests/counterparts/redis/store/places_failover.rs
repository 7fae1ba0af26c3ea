//! Tests of a pool of permits whose Redis loses its last writes, as after a failover.

use std::time::Duration;

use gateway::store::{PlacesCall, Store};
use limit::{KnownMembers, Moment, PoolCall, PoolReply};

use super::at;
use super::server::{Server, run};

/// Duration of a lease in milliseconds. After a loss nothing is granted for this long.
const LEASE: u64 = 2400;
/// Time for which permits of a vanished gateway are withheld, in milliseconds.
const ORPHAN: u64 = 5000;
/// Number of permits of the pool.
const PLACES: usize = 4;

/// A gateway that uses all permits that it holds.
struct Gateway {
    id: u64,
    number: u64,
    members: KnownMembers,
}

impl Gateway {
    fn new(id: u64) -> Self {
        Self {
            id,
            number: 0,
            members: KnownMembers::default(),
        }
    }

    /// Returns permits above `held`, and requests up to `usable`.
    async fn call(
        &mut self,
        pool: (&Store, &[u8]),
        held: usize,
        usable: usize,
        millis: u64,
    ) -> PoolReply {
        self.number += 1;
        let call = PoolCall {
            number: self.number,
            held,
            in_use: held,
            usable,
            wish: usable,
            weight: 1,
            members: self.members,
            of_all: None,
            leaves: false,
        };
        let call = PlacesCall {
            pool: pool.1,
            gateway: self.id.to_le_bytes(),
            most: (PLACES, Moment::default()),
            orphan: Duration::from_millis(ORPHAN),
            call,
            at: Some(at(millis)),
        };
        let reply = pool.0.places(&call).await.expect("it answers");
        self.members = reply.members;
        reply
    }
}

/// A replica that takes over grants no permit that may be in use.
///
/// One gateway has passed three permits to another one, and the replica does not know it. Nothing
/// is
/// granted until the holders are known. The other gateway's permits stay withheld if it does not
/// call.
#[test]
fn a_replica_that_takes_over_lends_nothing_that_may_be_in_use() {
    let (master, replica) = (Server::start(), Server::start());
    run(async {
        for comes in [true, false] {
            let name = master.key();
            let key = [b"drip:", &name[..]].concat();
            let (before, after) = (master.store(), replica.store());
            let (before, after) = ((&before, &name[..]), (&after, &name[..]));
            let (mut one, mut other) = (Gateway::new(1), Gateway::new(2));
            one.call(before, 0, 1, 0).await;
            other.call(before, 0, 0, 0).await;
            assert_eq!(one.call(before, 0, 4, LEASE + 1).await.lent, 4);
            other.call(before, 0, 0, LEASE + 2).await;
            let copy: Vec<u8> = master.ask("DUMP", &[&key]);
            one.call(before, 1, 1, LEASE + 10).await;
            assert_eq!(other.call(before, 0, 3, LEASE + 20).await.lent, 3);

            let () = replica.ask("RESTORE", &[&key, b"0", &copy]);
            let takes_over = LEASE + 100;
            let reply = one.call(after, 1, 4, takes_over).await;
            assert!(reply.counts.is_recovering && reply.lent == 1, "{reply:?}");
            if comes {
                let reply = other.call(after, 3, 3, takes_over + 50).await;
                assert_eq!((reply.lent, reply.counts.withheld), (3, 0), "{reply:?}");
            }
            let reply = one.call(after, 1, 4, takes_over + LEASE + 1).await;
            let counts = reply.counts;
            let (held, withheld) = if comes { (4, 0) } else { (1, 3) };
            assert_eq!(
                (reply.lent, reply.counts.is_recovering),
                (1, false),
                "{reply:?}"
            );
            assert_eq!(
                (counts.held, counts.withheld),
                (held, withheld),
                "{reply:?}"
            );
            let reply = one.call(after, 1, 4, takes_over + 2 * LEASE + ORPHAN).await;
            assert_eq!(reply.lent, 4, "all are free at last: {reply:?}");
        }
    });
}
