//! The file changes while the gateway runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{
    Arrival, Client, Gateway, MARGIN, MS, Origin, Site, check_pace, eventually, fetch,
    longest_pause, now, one_zone,
};

/// How long after the last write the file comes into force.
const IN_FORCE: Duration = Duration::from_millis(100);

const RELOADS: &str = "drip_config_reloads_total";
const SUCCESSFUL: &str = "drip_config_last_reload_successful";

/// A way to save a file.
type Save = fn(&Gateway, &str);

fn in_place(gateway: &Gateway, text: &str) {
    fs::write(gateway.site.file(), text).expect("a file");
}

fn in_place_slowly(gateway: &Gateway, text: &str) {
    use std::io::Write;
    let (one, other) = text.split_at(text.len() / 2);
    let mut file = fs::File::create(gateway.site.file()).expect("a file");
    file.write_all(one.as_bytes()).expect("room");
    thread::sleep(30 * MS);
    file.write_all(other.as_bytes()).expect("room");
}

fn rename_over(gateway: &Gateway, text: &str) {
    let draft = gateway.site.folder().join(".gateway.toml.swp");
    fs::write(&draft, text).expect("a file");
    fs::rename(draft, gateway.site.file()).expect("a file");
}

fn delete_and_recreate(gateway: &Gateway, text: &str) {
    fs::remove_file(gateway.site.file()).expect("a file");
    thread::sleep(10 * MS);
    fs::write(gateway.site.file(), text).expect("a file");
}

/// As Kubernetes mounts a `ConfigMap`: the file is a link into `..data`, which is itself a link that is swapped.
fn swap_symlink(gateway: &Gateway, text: &str) {
    mount(&gateway.site, text);
}

fn mount(site: &Site, text: &str) {
    let data = site.folder().join("..data");
    let old = fs::read_link(&data).ok();
    let nth = old
        .as_ref()
        .and_then(|old| old.to_str()?.strip_prefix("..version_")?.parse().ok())
        .unwrap_or(0);
    let new = format!("..version_{}", nth + 1);
    fs::create_dir(site.folder().join(&new)).expect("a folder");
    fs::write(site.folder().join(&new).join("gateway.toml"), text).expect("a file");
    let draft = site.folder().join("..data_tmp");
    symlink(&new, &draft).expect("a link");
    fs::rename(draft, &data).expect("a link");
    match old {
        Some(old) => fs::remove_dir_all(site.folder().join(old)).expect("a folder"),
        None => symlink("..data/gateway.toml", site.file()).expect("a link"),
    }
}

fn hang_up_signal(gateway: &Gateway, text: &str) {
    fs::write(gateway.site.file(), text).expect("a file");
    gateway.signal(Signal::HUP);
}

fn reloads(gateway: &Gateway, result: &str) -> i64 {
    gateway.metrics().count(RELOADS, &[("result", result)])
}

fn rate(gateway: &Gateway) -> i64 {
    gateway.zone("drip_zone_rate")
}

/// How many requests have joined the zone, whether they wait or have left.
fn joined(gateway: &Gateway) -> i64 {
    let metrics = gateway.metrics();
    let left = ["passed", "delayed"].map(|status| {
        metrics.count(
            "drip_zone_requests_total",
            &[("zone", "z"), ("status", status)],
        )
    });
    left.iter().sum::<i64>() + metrics.count("drip_zone_queue_depth", &[("zone", "z")])
}

/// Starts a gateway with the rate `before`, queues 14 requests, saves `after` with `save`, and computes from the
/// departures at the origin when the new rate began to count.
fn check_retune(site: Site, save: Save, before: u32, after: u32) {
    const WAITING: usize = 14;
    let origin = Origin::start();
    let file =
        |site: &Site, rate: u32| site.text(&one_zone(&origin, &format!("{rate}r/s"), "burst = 20"));
    if fs::read_link(site.file()).is_err() {
        fs::write(site.file(), file(&site, before)).expect("a file");
    } else {
        mount(&site, &file(&site, before));
    }
    let gateway = Gateway::run(site);
    eventually("the gateway is ready", || {
        gateway
            .admin("/readyz")
            .is_some_and(|answer| answer.status == 200)
    });

    let mut clients = Vec::new();
    for nth in 0..=WAITING {
        clients.push(Client::ask(gateway.address(), &format!("/{nth}?key=a")));
        // So that they arrive in this order, no matter which worker takes their connections.
        let what = format!("request {nth} has joined");
        eventually(&what, || {
            joined(&gateway) > i64::try_from(nth).expect("few")
        });
    }
    // Some have left at the old rate, and many still wait, when the file is saved.
    origin.wait_for(if before > after { 5 } else { 1 });
    thread::sleep(if before > after { 30 * MS } else { 200 * MS });
    let new = file(&gateway.site, after);
    save(&gateway, &new);
    let saved = now();

    // The first of those measured may still leave at the old rate on a busy machine.
    let measured = if before > after { 11 } else { WAITING + 1 };
    origin.wait_for(measured);
    let moments = origin.moments("key=a");
    let began = in_force_from(&moments, measured - 1, before, after, saved);
    assert!(
        began < (IN_FORCE + MARGIN + longest_pause(saved, now())).as_secs_f64(),
        "in force only {began} s after it was saved"
    );
    assert!(began > -0.03, "in force {} s before it was saved?", -began);
    let paced = Duration::from_secs(1) / after;
    check_pace(&moments[measured - 3..measured], paced).expect("the new pace");

    // The slow ones are measured; the others can be faster. They must still be so far apart that the origin sees
    // them in order on a busy machine: each comes over a connection of its own.
    if before > after {
        save(&gateway, &file(&gateway.site, 20));
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    check_order(&origin.arrivals(), WAITING);
    assert_eq!(
        reloads(&gateway, "failure"),
        0,
        "no half of a file was taken for the file"
    );
}

/// Nobody is lost, and each arrived before those who joined after it.
///
/// Of requests that the origin sees at the same moment, as after a pause of the machine, it cannot tell the order.
fn check_order(arrivals: &[Arrival], last: usize) {
    const SAME_MOMENT: Duration = Duration::from_millis(5);
    let nth = |arrival: &Arrival| {
        let number = arrival.target.strip_prefix('/')?.strip_suffix("?key=a")?;
        Some((number.parse::<usize>().ok()?, arrival.at))
    };
    let arrived: Vec<_> = arrivals.iter().filter_map(nth).collect();
    let mut sorted: Vec<_> = arrived.iter().map(|(nth, _)| *nth).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..=last).collect::<Vec<_>>(), "nobody is lost");
    for (index, (nth, at)) in arrived.iter().enumerate() {
        for (after, later) in &arrived[index + 1..] {
            let may_be_same = SAME_MOMENT + longest_pause(*at, *later);
            let is_in_order = after > nth || *later - *at < may_be_same;
            assert!(is_in_order, "{nth} before {after}: {arrived:?}");
        }
    }
}

/// When the rate changed, in seconds from `saved`: by the departure of number `nth`, `nth` requests have leaked since
/// the first departure, at the old rate until that moment, and at the new one from then on.
fn in_force_from(moments: &[Instant], nth: usize, before: u32, after: u32, saved: Instant) -> f64 {
    let seconds = |moment: Instant| match moment.checked_duration_since(saved) {
        Some(later) => later.as_secs_f64(),
        None => -(saved - moment).as_secs_f64(),
    };
    let leaked = f64::from(u32::try_from(nth).expect("few"));
    let (before, after) = (f64::from(before), f64::from(after));
    (leaked - after * seconds(moments[nth]) + before * seconds(moments[0])) / (before - after)
}

fn linked_site() -> Site {
    let site = Site::new();
    mount(&site, "");
    site
}

#[test]
fn a_higher_rate_written_in_place_paces_those_who_wait() {
    check_retune(Site::new(), in_place, 1, 10);
}

#[test]
fn a_lower_rate_written_in_place_paces_those_who_wait() {
    check_retune(Site::new(), in_place, 10, 1);
}

#[test]
fn a_higher_rate_written_in_two_halves_paces_those_who_wait() {
    check_retune(Site::new(), in_place_slowly, 1, 10);
}

#[test]
fn a_higher_rate_renamed_over_the_file_paces_those_who_wait() {
    check_retune(Site::new(), rename_over, 1, 10);
}

#[test]
fn a_higher_rate_in_a_recreated_file_paces_those_who_wait() {
    check_retune(Site::new(), delete_and_recreate, 1, 10);
}

#[test]
fn a_higher_rate_behind_a_swapped_link_paces_those_who_wait() {
    check_retune(linked_site(), swap_symlink, 1, 10);
}

#[test]
fn a_higher_rate_read_on_sighup_paces_those_who_wait() {
    check_retune(Site::new(), hang_up_signal, 1, 10);
}

#[test]
fn a_broken_file_changes_nothing_and_is_told_by_its_line_until_it_is_repaired() {
    let origin = Origin::start();
    let good = one_zone(&origin, "1r/m", "burst = 4, nodelay = true");
    let gateway = Gateway::start(&good);
    assert_eq!(gateway.metrics().count(SUCCESSFUL, &[]), 1);
    assert_eq!(
        fetch(gateway.address(), "/?key=a").number("x-ratelimit-remaining"),
        4
    );

    let broken = gateway.site.text(&good).replace("burst = 4", "brust = 9");
    in_place(&gateway, &broken);
    let before = &broken[..broken.find("brust").expect("it is there")];
    let line = before.lines().count();
    let column = before.lines().last().unwrap_or_default().len() + 1;
    let told = gateway.wait_for_line(&format!("gateway.toml:{line}:{column}: "));
    assert!(
        told.contains("brust") && told.contains("burst"),
        "it says what is wrong and what would be right: {told}"
    );
    eventually("the failure shows", || {
        gateway.metrics().count(SUCCESSFUL, &[]) == 0
    });
    assert_eq!(reloads(&gateway, "failure"), 1);
    let answer = fetch(gateway.address(), "/?key=a");
    assert_eq!(
        (answer.status, answer.number("x-ratelimit-limit")),
        (200, 5),
        "the old settings go on"
    );
    assert_eq!(
        answer.number("x-ratelimit-remaining"),
        3,
        "and so does the bucket"
    );

    in_place(&gateway, &broken.replace("brust = 9", "burst = 9"));
    eventually("the repaired file shows", || {
        gateway.metrics().count(SUCCESSFUL, &[]) == 1
    });
    assert_eq!(
        (reloads(&gateway, "success"), reloads(&gateway, "failure")),
        (1, 1)
    );
    let answer = fetch(gateway.address(), "/?key=a");
    assert_eq!(
        answer.number("x-ratelimit-limit"),
        10,
        "the new settings are in force"
    );
    assert_eq!(
        answer.number("x-ratelimit-remaining"),
        7,
        "on the same bucket"
    );
}

#[test]
fn a_file_that_sighup_finds_broken_changes_nothing_until_it_is_repaired() {
    let origin = Origin::start();
    let good = one_zone(&origin, "2r/s", "burst = 4");
    let gateway = Gateway::start(&good);
    hang_up_signal(&gateway, "[server\n");
    gateway.wait_for_line("gateway.toml:1:");
    eventually("the failure shows", || {
        gateway.metrics().count(SUCCESSFUL, &[]) == 0
    });
    assert!(reloads(&gateway, "failure") >= 1);
    assert_eq!(rate(&gateway), 2);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    hang_up_signal(&gateway, &gateway.site.text(&good.replace("2r/s", "3r/s")));
    eventually("the repaired file shows", || {
        gateway.metrics().count(SUCCESSFUL, &[]) == 1
    });
    assert_eq!(rate(&gateway), 3);
}

#[test]
fn an_unchanged_file_is_no_reload() {
    let origin = Origin::start();
    let file = one_zone(&origin, "2r/s", "burst = 4");
    let gateway = Gateway::start(&file);
    let text = gateway.site.text(&file);
    in_place(&gateway, &text);
    rename_over(&gateway, &text);
    // A test cannot wait for nothing to happen; this is twice as long as a reload may take.
    thread::sleep(2 * IN_FORCE);
    in_place(&gateway, &text.replace("2r/s", "3r/s"));
    eventually("the changed file is in force", || rate(&gateway) == 3);
    assert_eq!(
        (reloads(&gateway, "success"), reloads(&gateway, "failure")),
        (1, 0)
    );
}

/// A gateway where `/0` has passed and five others wait, and its origin.
fn five_waiting() -> (Origin, Gateway, Vec<Client>) {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "4r/s", "burst = 5"));
    let mut clients = vec![Client::ask(gateway.address(), "/0?key=a")];
    origin.wait_for(1);
    clients.extend((1..=5).map(|nth| Client::ask(gateway.address(), &format!("/{nth}?key=a"))));
    gateway.wait_for_depth(5);
    (origin, gateway, clients)
}

#[test]
fn a_burst_lowered_below_the_queue_drops_nobody_in_it() {
    let (origin, gateway, mut clients) = five_waiting();
    hang_up_signal(
        &gateway,
        &gateway.site.text(&one_zone(&origin, "4r/s", "burst = 1")),
    );
    eventually("the new burst is in force", || {
        reloads(&gateway, "success") >= 1
    });
    let newcomer = fetch(gateway.address(), "/new?key=a");
    assert_eq!(
        (newcomer.status, newcomer.number("x-ratelimit-limit")),
        (429, 2)
    );
    assert!(
        clients
            .iter_mut()
            .all(|client| client.answer().status == 200)
    );
    check_pace(&origin.moments("key=a"), 250 * MS).expect("the same pace");
}

#[test]
fn those_who_wait_in_a_zone_that_leaves_the_file_are_still_served() {
    let (origin, gateway, mut clients) = five_waiting();
    let without = one_zone(&origin, "1r/s", "burst = 0")
        .replace("zones.z", "zones.y")
        .replace("\"z\"", "\"y\"");
    hang_up_signal(&gateway, &gateway.site.text(&without));
    eventually("the new zone is in force", || {
        reloads(&gateway, "success") >= 1
    });
    let newcomer = fetch(gateway.address(), "/new?key=a");
    assert_eq!(
        (newcomer.status, newcomer.number("x-ratelimit-limit")),
        (200, 1),
        "the new zone takes newcomers"
    );
    assert!(
        clients
            .iter_mut()
            .all(|client| client.answer().status == 200)
    );
    let old: Vec<_> = origin
        .arrivals()
        .iter()
        .filter(|at| !at.target.contains("new"))
        .map(|at| at.at)
        .collect();
    check_pace(&old, 250 * MS).expect("the same pace");
}

#[test]
fn a_zone_that_joins_the_file_limits_from_then_on() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 1000");
    let gateway = Gateway::start(&file);
    assert_eq!(
        fetch(gateway.address(), "/?key=a").number("x-ratelimit-limit"),
        1001
    );
    let more = "[zones.new]\nkey = \"$arg_key\"\nrate = \"1r/m\"\n\n\
                [[routes]]\npath = \"/new\"\norigin = \"app\"\nlimits = [{ zone = \"new\" }]\n";
    hang_up_signal(&gateway, &gateway.site.text(&(file + more)));
    eventually("the new zone is there", || {
        gateway
            .metrics()
            .value("drip_zone_rate", &[("zone", "new")])
            .is_some()
    });
    eventually("the new route is in force", || {
        fetch(gateway.address(), "/new?key=a").status == 429
    });
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
}
