//! Tests of a gateway that has no file descriptors left.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::load::abuse::crowd::One;
use crate::load::abuse::open_gateway;
use crate::support::launch::launch;
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{
    Client, Gateway, Metrics, Origin, Site, assert_contains, drip, eventually, now, one_origin,
    quarter_alone, side_by_side,
};

/// Number of descriptors that the gateway may still open.
const MORE: usize = 24;

fn limit_descriptors(gateway: &Gateway, most: usize) {
    let id = i32::try_from(gateway.id()).ok().and_then(Pid::from_raw);
    let most = u64::try_from(most).ok();
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    prlimit(id, Resource::Nofile, limit).expect("a lower limit");
}

#[test]
fn without_descriptors_connected_clients_are_served_and_the_shortage_is_logged() {
    const MESSAGE: &str = "Error accepting connection: ";
    let _alone = quarter_alone();
    let origin = Origin::start();
    let gateway = open_gateway(&origin, "header_timeout = \"120s\"");
    let process = Process::of(gateway.id());
    // Its connection, and the one to the origin, exist before the others take the rest.
    let others = Others::on_one_connection(&gateway);
    let most = process.descriptors() + MORE;
    limit_descriptors(&gateway, most);

    let began = now();
    let crowd: Vec<_> = (0..200)
        .map(|nth| One::connect(gateway.address(), nth))
        .collect();
    // Descriptor numbers have no gaps except for those just closed: one or two may be missing.
    eventually("the descriptors are used up", || {
        process.descriptors() + 2 >= most
    });
    let _waiting = [(); 3].map(|()| Client::connect(gateway.site.admin));
    let line = gateway.wait_for_line(MESSAGE);
    assert_contains!(line, " ERROR ", "(os error 24)", "library=actix_server");
    // The gateway retries twice per second.
    let load = process.load();
    assert!(load < 0.3, "{load:.2} of a core without descriptors");
    others.check();

    drop(crowd);
    let back = now();
    let mut newcomer = gateway.ask("/?key=new");
    assert_eq!(newcomer.answer().status, 200);
    let took = back.elapsed();
    assert!(took < Duration::from_secs(5), "served again after {took:?}");
    let others = Others::start(&gateway);
    eventually("the admin port answers again", || {
        gateway
            .admin("/readyz")
            .is_some_and(|answer| answer.status == 200)
    });
    others.check();
    let log = gateway.log();
    assert!(log.lines().count() < 100, "a flood of log lines:\n{log}");
    // A library has one line per second.
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("few");
    assert!(log.matches(MESSAGE).count() <= seconds + 2, "{log}");
}

#[test]
fn without_a_descriptor_for_the_origin_a_request_waits_for_one_and_is_served() {
    let _alone = quarter_alone();
    let origin = Origin::start();
    let gateway = open_gateway(&origin, "header_timeout = \"120s\"");
    let process = Process::of(gateway.id());
    let mut client = gateway.connect();
    eventually("the connection is taken", || {
        client.fetch("/?key=a").status == 200
    });
    let mut crowd: Vec<_> = (0..30)
        .map(|nth| One::connect(gateway.address(), nth))
        .collect();
    eventually("they are taken", || {
        for one in &mut crowd {
            one.send(b"");
        }
        process.descriptors() >= 30
    });
    thread::sleep(Duration::from_millis(100));
    // No descriptor is left for a new connection to the origin: all requests share one kept
    // connection.
    limit_descriptors(&gateway, process.descriptors());
    for one in &mut crowd {
        assert!(one.send(b"GET /?key=b HTTP/1.1\r\nHost: a\r\n\r\n") > 0);
    }
    eventually("each is answered", || {
        crowd.iter_mut().all(|one| {
            one.take(1 << 20);
            one.status().is_some()
        })
    });
    for one in &crowd {
        let got = String::from_utf8_lossy(&one.got);
        assert!(one.status() == Some(200), "{got:?}");
    }
    drop(crowd);
    eventually("it is served again", || {
        client.fetch("/?key=a").status == 200
    });
    gateway.wait_in_flight(0);
}

#[test]
fn without_a_descriptor_in_time_a_request_gets_503_and_no_server_is_blamed() {
    let _alone = quarter_alone();
    let origin = Origin::start();
    let site = Site::new();
    site.write(&one_origin(
        origin.address,
        "workers = 1",
        "connect_timeout = \"300ms\"\nmax_in_flight = 50\n\
         health = { path = \"/health\", interval = \"200ms\" }\n[origins.app.backoff]",
    ));
    let gateway = Gateway::start_at(site);
    let mut clients: Vec<_> = (0..6).map(|_| gateway.connect()).collect();
    let metrics_of = |admin: &mut Client| {
        admin.get("/metrics");
        Metrics(admin.answer().text())
    };
    // Connected before the last descriptor is used.
    let mut admin = Client::connect(gateway.site.admin);
    let connected = |metrics: &Metrics| metrics.count("drip_connections", &[]) == 6;
    eventually("they are connected", || connected(&metrics_of(&mut admin)));
    let headline = |admin: &mut Client| admin.fetch("/api/headline").text();
    eventually("seconds are measured", || {
        headline(&mut admin).contains("\"idle\"")
    });
    // All lower numbers are in use, so no other descriptor is available, also not for health
    // checks.
    limit_descriptors(&gateway, 10);
    for client in &mut clients {
        client.get("/");
    }
    for client in &mut clients {
        let answer = client.answer();
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(answer.field("retry-after").is_some());
    }
    let server = format!("http://{}", origin.address);
    let metrics = metrics_of(&mut admin);
    let waits = |kind| metrics.count("drip_descriptor_waits_total", &[("for", kind)]);
    assert_eq!((waits("origin"), waits("in_vain")), (6, 6));
    let of_server = [("origin", "app"), ("server", &*server)];
    for outcome in ["unreachable", "timeout", "broken"] {
        let labels = [of_server[0], of_server[1], ("outcome", outcome)];
        assert_eq!(metrics.count("drip_origin_requests_total", &labels), 0);
    }
    let backoffs = metrics.count("drip_origin_backoffs_total", &of_server[..1]);
    assert_eq!(backoffs, 0);
    assert_eq!(metrics.value("drip_origin_healthy", &of_server), Some(1.0));
    eventually("the headline reports it", || {
        headline(&mut admin).contains("no file descriptor for connections to origins")
    });
    let received = headline(&mut admin);
    assert!(!received.contains("origin_failing"), "{received}");
    assert!(!gateway.log().contains("out of use"), "{}", gateway.log());
}

#[test]
fn check_warns_of_max_connections_that_do_not_fit() {
    let origin = Origin::start();
    let site = Site::new();
    let rest = one_origin(origin.address, "", "");
    let check = || {
        let mut program = drip();
        program.arg("check").arg(site.file());
        let mut command = launch(&program, "nofile=256");
        let output = command.output().expect("it runs");
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    site.write(&format!("max_connections = 5000\n{rest}"));
    let received = check();
    let says = [
        "warning",
        "the limit here is 256 file descriptors",
        "clients are connected at once",
    ];
    assert!(says.iter().all(|it| received.contains(it)), "{received}");
    site.write(&format!("max_connections = 50\n{rest}"));
    assert_eq!(check(), "");
    // A file with the default does not need as many.
    site.write(&rest);
    assert_eq!(check(), "");
}

/// Returns the command that runs the gateway of `site` under a limit: see [`launch`].
fn under(limit: &str, site: &Site) -> Command {
    let mut program = drip();
    program.arg("-c").arg(site.file());
    launch(&program, limit)
}

/// Starts a gateway without zones, under a limit.
fn started_under(limit: &str, origin: &Origin) -> Gateway {
    let site = Site::new();
    site.write(&one_origin(origin.address, "workers = 2", ""));
    let command = under(limit, &site);
    let gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    gateway
}

#[test]
fn no_more_clients_are_taken_than_can_be_served_and_the_start_says_how_many() {
    const CLIENTS: usize = 400;
    const REQUESTS: usize = 10;
    let _alone = quarter_alone();
    let origin = Origin::start();
    let gateway = started_under("nofile=256", &origin);
    let line = gateway.wait_for_line("fewer clients than max_connections");
    assert_contains!(line, " WARN ", " clients=", " needed=");
    assert_contains!(line, " max_connections=25000", " limit=256");
    let ask = |nth: usize| {
        let mut client = gateway.connect();
        let statuses = (0..REQUESTS).map(|_| client.fetch(&format!("/?client={nth}")).status);
        statuses.filter(|status| *status == 200).count()
    };
    let served = side_by_side(0..CLIENTS, ask);
    assert_eq!(served.into_iter().sum::<usize>(), CLIENTS * REQUESTS);
    let log = gateway.log();
    assert!(!log.contains("accepting connections failed"), "{log}");
}

#[test]
fn the_limit_of_the_process_is_raised_to_what_it_may_be() {
    let origin = Origin::start();
    let gateway = started_under("soft_nofile=100", &origin);
    let limits = fs::read_to_string(format!("/proc/{}/limits", gateway.id())).expect("a process");
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let mut values = files.expect("a limit").split_whitespace();
    assert_eq!(values.next(), values.next());
}

#[test]
fn a_too_low_descriptor_limit_is_reported_in_one_line_with_the_needed_value() {
    let origin = Origin::start();
    let site = Site::new();
    site.write(&one_origin(origin.address, "workers = 2", ""));
    let mut needed = 0;
    for limit in [8, 14, 24, 26, 34] {
        let mut command = under(&format!("nofile={limit}"), &site);
        let output = command.output().expect("it runs");
        let received = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{received}");
        assert_eq!(received.lines().count(), 1, "{received}");
        let begin = format!(
            "drip: the limit of file descriptors is {limit}, and the gateway needs at least "
        );
        let rest = received.strip_prefix(&begin).expect(&received);
        let remedy = "raise the limit (LimitNOFILE= in systemd, ulimit -n)\n";
        assert!(rest.ends_with(remedy), "{received}");
        let number = rest.split(' ').next().expect("a number");
        needed = number.parse().expect("a number");
    }
    // This number is enough for some clients.
    let gateway = started_under(&format!("nofile={needed}"), &origin);
    let mut clients: Vec<_> = (0..2).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.fetch("/").status, 200);
    }
    assert!(needed < 60u32, "{needed}");
}
