//! Tests of changes to the file while the gateway runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::gateway::check::location;
use crate::support::{
    Arrival, Client, Gateway, MARGIN, MS, Origin, Site, all_pass, check_pace, eventually,
    longest_pause, now, one_zone, start_limited,
};

/// Delay between the last write and the file coming into force.
const IN_FORCE: Duration = Duration::from_millis(100);

const RELOADS: &str = "drip_config_reloads_total";
const SUCCESSFUL: &str = "drip_config_last_reload_successful";

/// A way to save a file.
type Save = fn(&Gateway, &str);

fn in_place(gateway: &Gateway, text: &str) {
    fs::write(gateway.site.file(), text).expect("a file");
}

fn rename_over(gateway: &Gateway, text: &str) {
    let draft = gateway.site.folder().join(".gateway.toml.swp");
    fs::write(&draft, text).expect("a file");
    fs::rename(draft, gateway.site.file()).expect("a file");
}

fn hang_up_signal(gateway: &Gateway, text: &str) {
    fs::write(gateway.site.file(), text).expect("a file");
    gateway.signal(Signal::HUP);
}

fn reloads(gateway: &Gateway, result: &str) -> i64 {
    gateway.count(RELOADS, &[("result", result)])
}

fn rate(gateway: &Gateway) -> i64 {
    gateway.zone("drip_zone_rate")
}

/// Returns the number of requests that have joined the zone, waiting or departed.
fn joined(gateway: &Gateway) -> i64 {
    let metrics = gateway.metrics();
    let left = |status| {
        let labels = [("zone", "z"), ("status", status)];
        metrics.count("drip_zone_requests_total", &labels)
    };
    left("passed") + left("delayed") + metrics.count("drip_zone_queue_depth", &[("zone", "z")])
}

/// Checks when a new rate comes into force, in two of at most three tries.
///
/// Something else may have the processors for longer than the margin once.
fn check_retune(save: Save, before: u32, after: u32) {
    let (mut good, mut late) = (0, Vec::new());
    while good < 2 {
        match retune(save, before, after) {
            // Without a late try one is enough.
            Ok(()) => good += if late.is_empty() { 2 } else { 1 },
            Err(error) => late.push(error),
        }
        assert!(late.len() < 2, "{}", late.join("\n"));
    }
}

/// Saves a new rate while requests wait. An error says that the rate came into force too late.
///
/// Starts a gateway with the rate `before`, queues 14 requests, saves `after` with `save`, and
/// computes the instant from the departures at the origin.
fn retune(save: Save, before: u32, after: u32) -> Result<(), String> {
    const WAITING: usize = 14;
    let origin = Origin::start();
    let file = |rate: u32| one_zone(&origin, &format!("{rate}r/s"), "burst = 20");
    let gateway = Gateway::start(&file(before));

    let mut clients = Vec::new();
    for nth in 0..=WAITING {
        clients.push(gateway.ask(&format!("/{nth}?key=a")));
        // So that they arrive in this order, whichever worker accepts their connections.
        let what = format!("request {nth} has joined");
        let before = i64::try_from(nth).expect("few");
        eventually(&what, || joined(&gateway) > before);
    }
    // Some have left at the old rate, and many still wait, when the file is saved.
    origin.wait_for(if before > after { 5 } else { 1 });
    thread::sleep(if before > after { 30 * MS } else { 200 * MS });
    save(&gateway, &gateway.site.text(&file(after)));
    let saved = now();

    // On a busy machine the first of those measured may still leave at the old rate.
    let measured = if before > after { 13 } else { WAITING + 1 };
    origin.wait_for(measured);
    let moments = origin.moments("key=a");
    let began = in_force_from(&moments, measured - 1, before, after, saved);
    let pause = longest_pause(saved, now());
    let most = (IN_FORCE + MARGIN + pause).as_secs_f64();
    // A last departure that a pause delays looks like an earlier change.
    let least = -0.03 - pause.as_secs_f64();
    assert!(began > least, "in force {} s before it was saved?", -began);
    // A busy machine takes so long to queue the requests that most have left at the old rate. The
    // first gap may be a part at the old rate, and a part at the new one.
    let in_force = saved + Duration::from_secs_f64(began.max(0.0));
    let paced = moments[..measured].iter().copied();
    let paced: Vec<Instant> = paced.filter(|moment| *moment >= in_force).collect();
    if paced.len() < 2 {
        return Err(format!("{} have left at the new rate", paced.len()));
    }
    let paced = &paced[paced.len().saturating_sub(3)..];
    check_pace(paced, Duration::from_secs(1) / after).expect("the new pace");

    // The slow departures are measured; the others can be faster. Their distance must still let the
    // origin see them in order on a busy machine, because each uses its own connection.
    if before > after {
        save(&gateway, &gateway.site.text(&file(20)));
    }
    all_pass(&mut clients);
    check_order(&origin.arrivals(), WAITING);
    assert_eq!(reloads(&gateway, "failure"), 0, "no half of a file counts");
    let late = || format!("in force only {began} s after it was saved");
    (began < most).then_some(()).ok_or_else(late)
}

/// Checks that no request is lost, and each arrived before those that joined later.
///
/// The origin cannot order requests that it sees at the same moment, as after a pause of the
/// machine.
fn check_order(arrivals: &[Arrival], last: usize) {
    const SAME_MOMENT: Duration = Duration::from_millis(5);
    let nth = |arrival: &Arrival| {
        let number = arrival.target.strip_prefix('/')?.strip_suffix("?key=a")?;
        Some((number.parse::<usize>().ok()?, arrival.at))
    };
    let arrived: Vec<_> = arrivals.iter().filter_map(nth).collect();
    let mut sorted: Vec<_> = arrived.iter().map(|(nth, _)| *nth).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..=last).collect::<Vec<_>>(), "no request is lost");
    for (index, (nth, at)) in arrived.iter().enumerate() {
        for (after, later) in &arrived[index + 1..] {
            let may_be_same = SAME_MOMENT + longest_pause(*at, *later);
            let is_in_order = after > nth || *later - *at < may_be_same;
            assert!(is_in_order, "{nth} before {after}: {arrived:?}");
        }
    }
}

/// Returns the instant of the new rate, in seconds from `saved`.
///
/// By the departure of number `nth`, `nth` requests have leaked since the first departure: at the
/// old rate until that instant, and at the new rate afterwards.
fn in_force_from(moments: &[Instant], nth: usize, before: u32, after: u32, saved: Instant) -> f64 {
    let seconds = |moment: Instant| match moment.checked_duration_since(saved) {
        Some(later) => later.as_secs_f64(),
        None => -(saved - moment).as_secs_f64(),
    };
    let leaked = f64::from(u32::try_from(nth).expect("few"));
    let (before, after) = (f64::from(before), f64::from(after));
    (leaked - after * seconds(moments[nth]) + before * seconds(moments[0])) / (before - after)
}

#[test]
fn a_lower_rate_written_in_place_paces_those_who_wait() {
    check_retune(in_place, 10, 2);
}

#[test]
fn a_higher_rate_renamed_over_the_file_paces_those_who_wait() {
    check_retune(rename_over, 1, 10);
}

#[test]
fn a_broken_file_changes_nothing_and_its_line_is_reported_until_repair() {
    let origin = Origin::start();
    let good = one_zone(&origin, "1r/m", "burst = 4, nodelay = true");
    let gateway = Gateway::start(&good);
    let is_successful = || gateway.count(SUCCESSFUL, &[]) == 1;
    // The limit in force, and the rest of it: the bucket keeps its level.
    let ask = || {
        let answer = gateway.fetch("/?key=a");
        assert_eq!(answer.status, 200);
        ["limit", "remaining"].map(|name| answer.number(&format!("x-ratelimit-{name}")))
    };
    assert!(is_successful());
    assert_eq!(ask(), [5, 4]);

    let broken = gateway.site.text(&good).replace("burst = 4", "brust = 9");
    in_place(&gateway, &broken);
    let at = location(&broken, "brust");
    let received = gateway.wait_for_line(&format!("gateway.toml:{at}: "));
    let what = received.contains("brust") && received.contains("burst");
    assert!(what, "says what is wrong and what is right: {received}");
    eventually("the failure shows", || !is_successful());
    assert_eq!(reloads(&gateway, "failure"), 1);
    assert_eq!(ask(), [5, 3], "the old settings stay in force");

    in_place(&gateway, &broken.replace("brust = 9", "burst = 9"));
    eventually("the repaired file shows", is_successful);
    let counts = ["success", "failure"].map(|result| reloads(&gateway, result));
    assert_eq!(counts, [1, 1]);
    assert_eq!(ask(), [10, 7], "the new settings on the same bucket");
}

#[test]
fn a_file_that_sighup_finds_broken_changes_nothing_until_it_is_repaired() {
    let origin = Origin::start();
    let good = one_zone(&origin, "2r/s", "burst = 4");
    let gateway = Gateway::start(&good);
    hang_up_signal(&gateway, "[server\n");
    gateway.wait_for_line("gateway.toml:1:");
    eventually("the failure shows", || gateway.count(SUCCESSFUL, &[]) == 0);
    assert!(reloads(&gateway, "failure") >= 1);
    assert_eq!(rate(&gateway), 2);
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    hang_up_signal(&gateway, &gateway.site.text(&good.replace("2r/s", "3r/s")));
    eventually("the repaired file shows", || {
        gateway.count(SUCCESSFUL, &[]) == 1
    });
    assert_eq!(rate(&gateway), 3);
}

/// Mounts a version as Kubernetes mounts a `ConfigMap`.
///
/// The file is a link into `..data`, which is itself a link that is swapped.
fn mount(site: &Site, version: &str, rest: &str) {
    let (new, draft) = (
        site.folder().join(version),
        site.folder().join("..data_tmp"),
    );
    fs::create_dir(&new).expect("a folder");
    fs::write(new.join("gateway.toml"), site.text(rest)).expect("a file");
    symlink(version, &draft).expect("a link");
    fs::rename(draft, site.folder().join("..data")).expect("a link");
}

#[test]
fn a_file_behind_a_swapped_link_is_read_and_an_unchanged_one_is_no_reload() {
    let origin = Origin::start();
    let file = one_zone(&origin, "2r/s", "burst = 4");
    let site = Site::new();
    mount(&site, "..1", &file);
    symlink("..data/gateway.toml", site.file()).expect("a link");
    let gateway = Gateway::start_at(site);
    mount(&gateway.site, "..2", &file);
    in_place(&gateway, &gateway.site.text(&file));
    // A test cannot prove that nothing happens. This waits twice as long as a reload may take.
    thread::sleep(2 * IN_FORCE);
    mount(&gateway.site, "..3", &file.replace("2r/s", "3r/s"));
    // A reload is counted after the rate is in force.
    eventually("the changed file is in force", || {
        rate(&gateway) == 3 && reloads(&gateway, "success") > 0
    });
    let counts = ["success", "failure"].map(|result| reloads(&gateway, result));
    assert_eq!(counts, [1, 0]);
}

/// Starts a gateway where `/0` has passed and five other requests wait. Also returns its origin.
fn five_waiting() -> (Origin, Gateway, Vec<Client>) {
    let (origin, gateway) = start_limited("4r/s", "burst = 5");
    let mut clients = vec![gateway.ask("/0?key=a")];
    origin.wait_for(1);
    clients.extend((1..=5).map(|nth| gateway.ask(&format!("/{nth}?key=a"))));
    gateway.wait_for_depth(5);
    (origin, gateway, clients)
}

#[test]
fn a_burst_lowered_below_the_queue_drops_nobody_in_it() {
    let (origin, gateway, mut clients) = five_waiting();
    let lowered = one_zone(&origin, "4r/s", "burst = 1");
    hang_up_signal(&gateway, &gateway.site.text(&lowered));
    gateway.wait_for_line("burst 5 -> 1");
    let newcomer = gateway.fetch("/new?key=a");
    assert_eq!(newcomer.status, 429);
    assert_eq!(newcomer.number("x-ratelimit-limit"), 2);
    all_pass(&mut clients);
    check_pace(&origin.moments("key=a"), 250 * MS).expect("the same pace");
}

#[test]
fn those_who_wait_in_a_zone_that_leaves_the_file_are_still_served() {
    let (origin, gateway, mut clients) = five_waiting();
    let without = one_zone(&origin, "1r/s", "burst = 0");
    let without = without
        .replace("zones.z", "zones.y")
        .replace("\"z\"", "\"y\"");
    hang_up_signal(&gateway, &gateway.site.text(&without));
    gateway.wait_for_line("zones.z removed");
    let newcomer = gateway.fetch("/new?key=a");
    assert_eq!(newcomer.status, 200, "the new zone takes newcomers");
    assert_eq!(newcomer.number("x-ratelimit-limit"), 1);
    all_pass(&mut clients);
    let mut moments = origin.moments("key=a");
    moments.retain(|at| !origin.moments("new").contains(at));
    check_pace(&moments, 250 * MS).expect("the same pace");
}
