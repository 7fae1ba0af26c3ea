//! The recommended settings do what was predicted.

use std::fmt::Write;
use std::thread;
use std::time::Duration;

use super::{Row, advise, pasted, table, toml, write};
use crate::support::{
    Client, Gateway, Origin, best_of_three, eventually, half_alone, now, whole_lines,
};

/// Milliseconds, and the key.
fn requests() -> Vec<(u64, &'static str)> {
    let mut requests = Vec::new();
    for burst in 0..5 {
        // Twelve at once, and then nothing for 800 ms.
        requests.extend([(burst * 800, "a"); 12]);
    }
    // Every 100 ms, far below the rate.
    requests.extend((0..40).map(|nth| (nth * 100 + 13, "b")));
    // Once twenty, 10 ms after each other.
    requests.extend((0..20).map(|nth| (1_000 + nth * 10, "c")));
    requests.sort_unstable();
    requests
}

fn log(requests: &[(u64, &str)]) -> String {
    let mut log = String::new();
    for (at, key) in requests {
        writeln!(
            log,
            "{{\"time\":\"2026-11-01T09:00:{:02}.{:03}Z\",\"client\":\"127.0.0.1\",\"method\":\"GET\",\
             \"target\":\"/?key={key}\",\"status\":200}}",
            at / 1000,
            at % 1000
        )
        .unwrap();
    }
    log
}

/// The same at a real gateway: the shares of delayed and rejected requests, and the p99 wait of the delayed ones.
fn replayed(settings: &str, requests: &[(u64, &'static str)]) -> (f64, f64, f64) {
    let gateway = Gateway::start(settings);
    let mut clients: Vec<Client> = requests
        .iter()
        .map(|_| Client::connect(gateway.address()))
        .collect();
    let begin = now() + Duration::from_millis(50);
    let answers: Vec<u16> = thread::scope(|scope| {
        let asking = clients.iter_mut().zip(requests).map(|(client, (at, key))| {
            scope.spawn(move || {
                thread::sleep(
                    (begin + Duration::from_millis(*at)).saturating_duration_since(now()),
                );
                client.get(&format!("/?key={key}"));
                client.answer().status
            })
        });
        let asking: Vec<_> = asking.collect();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let count = |number: usize| f64::from(u32::try_from(number).unwrap());
    let log = gateway.site.folder().join("access.json");
    let read = || whole_lines(&log);
    eventually("the log has all", || {
        read().lines().count() == requests.len()
    });
    let log = read();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let delayed = lines.filter(|line| line["limit_status"] == "delayed");
    let mut waits: Vec<f64> = delayed
        .filter_map(|line| line["queue_seconds"].as_f64())
        .collect();
    waits.sort_by(f64::total_cmp);
    let rejected = answers.iter().filter(|status| **status == 429).count();
    let told = |status| {
        let labels = [("zone", "per_arg_key"), ("status", status)];
        gateway.metrics().count("drip_zone_requests_total", &labels)
    };
    assert_eq!(told("delayed"), i64::try_from(waits.len()).unwrap());
    assert_eq!(told("rejected"), i64::try_from(rejected).unwrap());
    let nearly_last = (waits.len() * 99).div_ceil(100).saturating_sub(1);
    let all = count(answers.len());
    (
        count(waits.len()) / all,
        count(rejected) / all,
        waits.get(nearly_last).copied().unwrap_or_default(),
    )
}

/// Within 5 % of the prediction; a prediction of 0 must be exact.
fn check(row: &Row, (delayed, rejected, p99): (f64, f64, f64)) -> Result<(), String> {
    let pairs = [
        (row.delayed, delayed),
        (row.rejected, rejected),
        (row.p99, p99),
    ];
    let is_right = |(said, found): &(f64, f64)| (said - found).abs() <= 0.05 * said;
    if pairs.iter().all(is_right) {
        Ok(())
    } else {
        Err(format!(
            "{row:?}, but it was {delayed}, {rejected} and {p99} s"
        ))
    }
}

#[test]
fn what_is_predicted_happens_at_a_real_gateway_within_five_percent() {
    let _alone = half_alone();
    let folder = tempfile::tempdir().unwrap();
    let requests = requests();
    write(folder.path(), "log", log(&requests));
    let report = advise(folder.path(), &["--key", "$arg_key", "log"]);
    let origin = Origin::start();
    let rows = table(&report);
    let recommended = rows.iter().find(|row| row.is_chosen).unwrap();
    let half = |row: &&Row| row.rate == recommended.rate && row.burst < recommended.burst;
    let smaller = rows.iter().find(half).unwrap();
    assert!(
        recommended.rejected == 0.0 && smaller.rejected > 0.05,
        "{report}"
    );
    for row in [recommended, smaller] {
        let burst = |burst: u32| format!("burst = {burst} ");
        let toml = toml(&report).replace(&burst(recommended.burst), &burst(row.burst));
        let settings = pasted(&origin.address.to_string(), &toml);
        let settings = format!("{settings}\n[log]\nformat = \"json\"\naccess = \"access.json\"\n");
        best_of_three(|_| check(row, replayed(&settings, &requests)));
    }
}
