//! A cluster of real Redis servers whose connections go through relays.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use redis::{FromRedisValue, RedisResult};
use tempfile::TempDir;

use crate::programs::redis::Redis;
use crate::redis::shared::relay::Relay;
use crate::support::{eventually, free_address, now};

/// Address of all clients that are not nodes.
pub const GATEWAYS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Silence of a node after which the other nodes consider it dead.
const NODE_TIMEOUT: Duration = Duration::from_millis(1500);
/// Maximum time until a replica has replaced a dead master and all nodes know it.
const TAKEN_OVER: Duration = Duration::from_secs(15);
const SLOTS: usize = 16_384;
const MASTERS: usize = 3;

/// Three masters, each with a replica. All their incoming traffic goes through relays.
pub struct Cluster {
    pub nodes: Vec<Node>,
}

/// A real Redis of a cluster. It has its own address, so that relays can identify it.
pub struct Node {
    pub redis: RefCell<Redis>,
    address: SocketAddr,
    clients: Relay,
    bus: Relay,
    source: IpAddr,
    id: String,
}

impl Node {
    fn start(nth: u8) -> Self {
        let (address, bus_address) = (free_address(), free_address());
        let (clients, bus) = (Relay::to(address), Relay::to(bus_address));
        let source = IpAddr::from([127, 0, 0, 20 + nth]);
        let timeout = NODE_TIMEOUT.as_millis();
        // The replica may follow its master after any silence. Only tests need this.
        let arguments = format!(
            "--cluster-enabled yes --cluster-node-timeout {timeout} \
             --cluster-replica-validity-factor 0 --repl-diskless-sync-delay 0 \
             --cluster-port {} --cluster-announce-ip 127.0.0.1 --cluster-announce-port {} \
             --cluster-announce-bus-port {} --bind-source-addr {source}",
            bus_address.port(),
            clients.address.port(),
            bus.address.port(),
        );
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let folder = TempDir::new().expect("a folder");
        let mut node = Self {
            redis: RefCell::new(Redis::in_folder(folder, address, &arguments)),
            address,
            clients,
            bus,
            source,
            id: String::new(),
        };
        node.id = node.ask("CLUSTER MYID");
        node
    }

    /// Sends a command directly to the node, past the relays.
    pub fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        self.try_ask(command)
            .unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    fn try_ask<T: FromRedisValue>(&self, command: &str) -> RedisResult<T> {
        self.redis.borrow().query(command, &[])
    }

    /// Returns how often the node has answered with this error.
    pub fn errors(&self, code: &str) -> usize {
        let received: String = self.ask("INFO errorstats");
        let line = received
            .lines()
            .find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")));
        line.map_or(0, |count| count.trim().parse().expect("a count"))
    }

    pub fn is_master(&self) -> bool {
        let received: RedisResult<String> = self.try_ask("INFO replication");
        received.is_ok_and(|received| received.contains("role:master"))
    }

    /// Returns whether the node lists a replica for each master.
    pub fn lists_replicas(&self) -> bool {
        let slots: Vec<Vec<redis::Value>> = self.ask("CLUSTER SLOTS");
        // A range has its first and last slot, the master and a replica.
        slots.iter().all(|range| range.len() == 4)
    }

    fn is_up(&self) -> bool {
        let info: RedisResult<String> = self.try_ask("CLUSTER INFO");
        info.is_ok_and(|info| info.contains("cluster_state:ok"))
    }
}

impl Cluster {
    /// Starts the nodes: 0 to 2 are masters with a third of the slots each.
    ///
    /// Node `n + 3` is the replica of node `n`.
    pub fn start() -> Self {
        let nodes: Vec<Node> = (0..6).map(Node::start).collect();
        for (nth, node) in nodes.iter().enumerate() {
            node.ask::<()>(&format!("CLUSTER SET-CONFIG-EPOCH {}", nth + 1));
            let (port, bus) = (node.clients.address.port(), node.bus.address.port());
            let meet = format!("CLUSTER MEET 127.0.0.1 {port} {bus}");
            nodes[0].ask::<()>(&meet);
        }
        for (nth, node) in nodes.iter().take(MASTERS).enumerate() {
            let (first, end) = (nth * SLOTS / MASTERS, (nth + 1) * SLOTS / MASTERS);
            node.ask::<()>(&format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1));
        }
        for (nth, replica) in nodes.iter().enumerate().skip(MASTERS) {
            let follow = format!("CLUSTER REPLICATE {}", nodes[nth - MASTERS].id);
            eventually("the replica knows its master", || {
                replica.try_ask::<()>(&follow).is_ok()
            });
        }
        let cluster = Self { nodes };
        cluster.wait_until("each node has its place", |cluster| {
            cluster.is_whole()
                && cluster.nodes[MASTERS..]
                    .iter()
                    .all(|node| !node.is_master())
        });
        cluster
    }

    /// Returns the URL with all nodes.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self
            .nodes
            .iter()
            .map(|node| node.clients.address.to_string())
            .collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// Returns whether all nodes know each other, and each replica is up to date.
    pub fn is_whole(&self) -> bool {
        self.nodes.iter().all(|node| {
            let table: RedisResult<String> = node.try_ask("CLUSTER NODES");
            let table = table.unwrap_or_default();
            let replication: RedisResult<String> = node.try_ask("INFO replication");
            let replication = replication.unwrap_or_default();
            node.is_up()
                && table.lines().filter(|line| !line.contains("fail")).count() == 6
                && table.matches("slave").count() == MASTERS
                && !replication.contains("master_link_status:down")
        })
    }

    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = now() + TAKEN_OVER;
        while !is_so(self) {
            assert!(now() < deadline, "waited {TAKEN_OVER:?} in vain: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the replica of a master has replaced it, and the other nodes know.
    pub fn wait_for_takeover(&self, master: usize) {
        let others = |nth: &usize| *nth != master;
        self.wait_until("the replica has taken over", |cluster| {
            cluster.nodes[master + MASTERS].is_master()
                && (0..6).filter(others).all(|nth| cluster.nodes[nth].is_up())
        });
    }

    /// Moves a slot with its keys as `redis-cli --cluster reshard` does.
    ///
    /// Calls `half_way` when the keys have moved but the nodes still redirect them one by one.
    pub fn move_slot(&self, slot: usize, from: usize, to: usize, half_way: impl FnOnce()) {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        target.ask::<()>(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", source.id));
        source.ask::<()>(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", target.id));
        loop {
            let keys: Vec<String> = source.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 10"));
            if keys.is_empty() {
                break;
            }
            let port = target.address.port();
            let keys = keys.join(" ");
            source.ask::<()>(&format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 KEYS {keys}"));
        }
        half_way();
        for node in [target, source] {
            node.ask::<()>(&format!("CLUSTER SETSLOT {slot} NODE {}", target.id));
        }
    }

    /// Returns the slot of a key, and the master that had it at first.
    pub fn slot_of(&self, key: &str) -> (usize, usize) {
        // Any node knows the slot. The first node may be dead.
        let slot: usize = self.nodes[MASTERS].ask(&format!("CLUSTER KEYSLOT {key}"));
        (slot, (slot * MASTERS + MASTERS - 1) / SLOTS)
    }

    /// Splits a node from these clients.
    pub fn split_from_clients(&self, node: usize, clients: IpAddr) {
        self.nodes[node].clients.split_from(clients);
    }

    /// Splits a node from all other nodes, in both directions. Gateways still reach all nodes.
    pub fn split_from_nodes(&self, node: usize) {
        let alone = &self.nodes[node];
        for other in self.nodes.iter().filter(|other| other.id != alone.id) {
            for (relay, source) in [(&other.bus, alone.source), (&alone.bus, other.source)] {
                relay.split_from(source);
            }
            for (relay, source) in [
                (&other.clients, alone.source),
                (&alone.clients, other.source),
            ] {
                relay.split_from(source);
            }
        }
    }

    pub fn heal(&self) {
        for node in &self.nodes {
            node.clients.heal();
            node.bus.heal();
        }
    }
}
