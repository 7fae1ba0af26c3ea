//! Compares the fake Redis with a real one: the same calls have the same replies.
//!
//! These tests need the program `redis-server`, so they run only on request:
//! `cargo test --lib redis_server -- --ignored`. They fail if it cannot be started.

use std::cell::RefCell;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use limit::{Algorithm, ClassDemand, Cost, Delay, KeyChange, KeyReport, Limit, Moment};
use redis::{Cmd, Connection, RedisResult, Value};
use tempfile::TempDir;

use super::super::network::words;
use super::super::random::Random;
use super::{Change, FakeRedis, answer_with};
use crate::store::{Charge, Claim, Join, Refund, Store, StoreRate};

/// A real Redis without persistence, on its own socket.
struct RealRedis {
    folder: TempDir,
    process: Child,
}

impl RealRedis {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--save", ""])
            .args(["--unixsocket", "redis", "--dir"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = command.spawn();
        let process = process.expect("redis-server starts: tests/run.sh installs it");
        Self { folder, process }
    }

    fn connect(&self) -> Connection {
        let socket = self.folder.path().join("redis");
        let client = redis::Client::open(format!("redis+unix://{}", socket.display()));
        let client = client.expect("a client");
        for _ in 0..500 {
            if let Ok(connection) = client.get_connection() {
                return connection;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not listen");
    }
}

impl Drop for RealRedis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends commands to a real and a fake Redis, and compares their replies.
struct Both {
    real: RefCell<Connection>,
    fake: RefCell<FakeRedis>,
    /// Number of compared replies.
    compared: RefCell<usize>,
}

/// Returns the comparable part of a reply: of an error only its kind.
fn comparable(reply: RedisResult<Value>) -> Result<Value, String> {
    reply.map_err(|error| error.code().unwrap_or_default().to_owned())
}

impl Both {
    fn new(real: &RealRedis) -> Rc<Self> {
        Rc::new(Self {
            real: RefCell::new(real.connect()),
            fake: RefCell::new(FakeRedis::new(Change::NONE)),
            compared: RefCell::default(),
        })
    }

    fn run(&self, command: &Cmd) -> RedisResult<Value> {
        // Lifetimes are far longer than the test, so the fake clock may stand still.
        let fake = self.fake.borrow_mut().run(NOW, &words(command)).read();
        let real = command.query::<Value>(&mut self.real.borrow_mut());
        *self.compared.borrow_mut() += 1;
        let text = command.get_packed_command();
        assert_eq!(comparable(fake), comparable(real.clone()), "{text:?}");
        real
    }
}

/// Time of the test, in microseconds since the Unix epoch.
const NOW: u64 = 1_800_000_000_000_000;

/// Returns this time, or rarely an earlier one.
fn clock(micros: u64, most: u64, random: &mut Random) -> Moment {
    let back = random.number(0..most);
    let back = if random.chance(5) { back } else { 0 };
    Moment::from_nanos((micros - back) * 1000)
}

/// Draws a rate of a gateway's file, and the time since which the file has it.
fn draw_pace(rates: &[&str], algorithm: Algorithm, random: &mut Random) -> StoreRate {
    let rate = random.pick(rates).parse().expect("a rate");
    let since = Moment::from_nanos(random.number(1..4) * 1_000_000_000);
    StoreRate::new(rate, algorithm, since).expect("a rate for Redis")
}

/// Sends joins and refunds of one gateway for a zone.
async fn send_joins(store: &Store, random: &mut Random, algorithm: Algorithm) {
    let key = format!("zone:{}:{}", algorithm.name(), random.number(0..1_000_000));
    let rates = ["10r/s", "3r/2s", "0.7r/s", "333r/s", "100r/m", "1r/h"];
    let (mut micros, mut charges) = (NOW, Vec::<Charge>::new());
    // A long log is stored in another way.
    let is_long = algorithm == Algorithm::SlidingWindowLog && random.chance(30);
    let (steps, bursts) = if is_long { (400, 600) } else { (40, 30) };
    for _ in 0..random.number(1..steps) {
        micros += random.number(0..4).pow(5) * random.number(1..2000);
        let at = Some(clock(micros, 3_000_000, random));
        let pace = draw_pace(&rates, algorithm, random);
        let key = key.as_bytes();
        if random.chance(20) && !charges.is_empty() {
            let charge = random.pick(&charges);
            let refund = Refund {
                key,
                algorithm,
                pace: &pace,
                charge,
                at,
            };
            let _reply = store.refund(&[refund, refund]).await;
            if algorithm.queues() && random.chance(20) {
                let _reply = store.forget_behind(&refund).await;
            }
            continue;
        }
        let delay = match random.number(0..3) {
            0 => Delay::Never,
            1 => Delay::Above(0),
            _ => Delay::Above(random.small(0..3)),
        };
        let limit = Limit {
            burst: random.small(0..bursts),
            max_wait: random.chance(30).then(|| random.millis(1..5000)),
            ..Limit::unlimited(delay, Cost::new(random.small(1..6)).unwrap_or(Cost::ONE))
        };
        let join = Join {
            key,
            algorithm,
            pace: &pace,
            limit,
            at,
        };
        let count = usize::try_from(random.number(1..5)).unwrap_or(1);
        let answers = store.decide(&vec![join; count]).await;
        let received = answers.into_iter().filter_map(Result::ok);
        charges.extend(received.filter_map(|answer| answer.charge));
    }
}

/// Sends the claims of gateways for one grid.
async fn send_claims(store: &Store, random: &mut Random) {
    let grid = format!("gate:{}", random.number(0..1_000_000));
    let rates = ["10r/s", "333r/s", "8000r/s", "7r/3s"];
    let mut micros = NOW;
    let mut reports: [KeyReport; 4] = Default::default();
    for _ in 0..random.number(1..40) {
        micros += random.number(0..4).pow(5) * random.number(1..2000);
        let at = Some(clock(micros, 30_000_000, random));
        let pace = draw_pace(&rates, Algorithm::LeakyBucket, random);
        let classes = (0..random.small(0..3)).map(|class| ClassDemand {
            class,
            weight: random.small(1..5),
            keys: random.number(1..9),
        });
        let classes: Vec<ClassDemand> = classes.collect();
        let gateway = random.index(4);
        let report = &mut reports[gateway];
        report.claim += 1;
        let changes = (0..random.small(0..6)).map(|_| KeyChange {
            key: random.number(0..8),
            class: random.small(0..3),
            weight: random.small(0..4),
        });
        report.changes = changes.collect();
        report.changes.sort_by_key(|change| change.key);
        report.changes.dedup_by_key(|change| change.key);
        let claim = Claim {
            grid: grid.as_bytes(),
            gateway: (gateway as u64).to_le_bytes(),
            pace: &pace,
            slots: random.number(0..40),
            part: if random.chance(20) { 0.375 } else { 1.0 },
            lead: random.micros(0..30_000),
            classes: &classes,
            keys: random.chance(95).then_some(&*report),
            at,
        };
        if let Ok(received) = store.call(&claim).await {
            let report = &mut reports[gateway];
            if random.chance(90) {
                report.generation = received.keys.generation;
                report.answered = report.claim;
            }
        }
    }
}

#[test]
#[ignore = "needs the program redis-server: cargo test --lib redis_server -- --ignored"]
fn scripts_have_the_same_replies_as_in_a_real_redis() {
    let server = RealRedis::start();
    let both = Both::new(&server);
    let answering = Rc::clone(&both);
    let _network = answer_with(move |command| answering.run(command));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.expect("a runtime").block_on(async {
        let url = "redis://both:6379".parse().expect("a URL");
        let store = Store::new(url, "drip:", Duration::from_secs(60));
        let mut random = Random::new(1);
        for _ in 0..40 {
            for (_, algorithm) in Algorithm::NAMED {
                send_joins(&store, &mut random, algorithm).await;
            }
            send_claims(&store, &mut random).await;
        }
    });
    assert!(*both.compared.borrow() > 2000, "{}", both.compared.borrow());
}

#[test]
#[ignore = "needs the program redis-server: cargo test --lib redis_server -- --ignored"]
fn commands_have_the_same_replies_as_in_a_real_redis() {
    let server = RealRedis::start();
    let both = Both::new(&server);
    let mut random = Random::new(2);
    let commands: Vec<&str> = "GET k,MGET k l m,SET k v,SET k v NX,SET k v PX 10000000,SET k v PX 0,\
        SET k v PX 10000000 NX,SET k v XX7,UNLINK k m,DEL l,HGET k f,HGET k g,HMGET k f g,HSET k f v,\
        HSET k f w g x,HSET k f,HDEL k f,HDEL k f g h,HLEN k,PEXPIRE k 10000000,PTTL none,PING"
        .split(',')
        .collect();
    for _ in 0..4000 {
        let key = random.pick(&["k", "l", "m"]);
        let mut words = random.pick(&commands).split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        for word in words {
            command.arg(if word == "k" { key } else { word });
        }
        let _same = both.run(&command);
    }
}
