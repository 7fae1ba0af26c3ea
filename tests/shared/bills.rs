//! Answers that tell what their requests cost, in zones that gateways share.

use std::thread;
use std::time::Duration;

use crate::shared::{count_within, file, under_load};
use crate::support::redis::Redis;
use crate::support::{
    Client, Exchange, Gateway, MS, Origin, best_of_three, fetch, now, quarter_alone,
};

/// Answers after 50 ms, and says that the request has cost what its target says in `says=`.
fn billing() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let target = exchange.target().to_owned();
        let said = target.split("says=").nth(1).unwrap_or("1");
        thread::sleep(50 * MS);
        let head = format!("HTTP/1.1 200 OK\r\nX-Drip-Cost: {said}\r\nContent-Length: 2\r\n\r\nok");
        exchange.send(head.as_bytes())
    })
}

/// Two gateways that share a zone whose requests cost what their answers say.
fn two(
    origin: &Origin,
    redis: &Redis,
    rate: &str,
    more: &str,
    limit: &str,
    estimate: u32,
) -> [Gateway; 2] {
    let cost =
        format!("cost = {{ response_header = \"x-drip-cost\", estimate = {estimate}, max = 9 }}");
    let text = file(origin, &redis.url(), rate, more, limit);
    let text = text.replace("path = \"/\"\n", &format!("path = \"/\"\n{cost}\n"));
    [Gateway::start(&text), Gateway::start(&text)]
}

/// Fails unless these requests came so many milliseconds after the first one, give or take 25.
fn check(origin: &Origin, wanted: &[(&str, u32)]) -> Result<(), String> {
    let first = origin.moments(wanted[0].0)[0];
    let came = wanted
        .iter()
        .map(|(who, _)| origin.moments(who)[0].saturating_duration_since(first));
    let came: Vec<_> = came.collect();
    let is_near =
        |(came, (_, wanted)): (&Duration, &(&str, u32))| came.abs_diff(*wanted * MS) < 25 * MS;
    if came.iter().zip(wanted).all(is_near) {
        Ok(())
    } else {
        Err(format!("they came after {came:?}"))
    }
}

#[test]
fn a_bill_moves_those_who_wait_here_back_and_comes_before_all_who_join_later() {
    let (origin, redis) = (billing(), Redis::start());
    let [one, other] = two(&origin, &redis, "10r/s", "", ", burst = 20", 1);
    best_of_three(|attempt| {
        let ask = |gateway: &Gateway, who: &str, says: u32| {
            let target = format!("/?key={attempt}&{who}{attempt}&says={says}");
            let client = Client::ask(gateway.address(), &target);
            thread::sleep(10 * MS);
            client
        };
        let mut clients = vec![ask(&one, "first", 5), ask(&one, "second", 1)];
        // It has a time of the schedule already, which no other gateway takes.
        clients.push(ask(&other, "third", 1));
        thread::sleep(60 * MS);
        clients.push(ask(&other, "fourth", 1));
        assert!(clients.iter_mut().all(|it| it.answer().status == 200));
        let who = ["first", "second", "third", "fourth"].map(|who| format!("{who}{attempt}"));
        // The bill of four takes the places at 300 to 600 ms, and that at 100 ms stays unused.
        let wanted = [
            (&*who[0], 0),
            (&*who[1], 600),
            (&*who[2], 200),
            (&*who[3], 700),
        ];
        check(&origin, &wanted)
    });
}

#[test]
fn what_an_answer_costs_less_moves_those_who_wait_here_up() {
    let (origin, redis) = (billing(), Redis::start());
    let [one, other] = two(&origin, &redis, "10r/s", "", ", burst = 30", 5);
    best_of_three(|attempt| {
        let mut clients: Vec<Client> = ["first", "second", "third"]
            .iter()
            .map(|who| {
                let target = format!("/?key={attempt}&{who}{attempt}&says=1");
                let client = Client::ask(one.address(), &target);
                thread::sleep(5 * MS);
                client
            })
            .collect();
        assert!(clients.iter_mut().all(|it| it.answer().status == 200));
        // The last part is given back about now.
        thread::sleep(20 * MS);
        let last = format!("/?key={attempt}&last{attempt}&says=1");
        assert_eq!(fetch(other.address(), &last).status, 200);
        let who = ["first", "second", "third", "last"].map(|who| format!("{who}{attempt}"));
        let wanted = [
            (&*who[0], 0),
            (&*who[1], 100),
            (&*who[2], 200),
            (&*who[3], 300),
        ];
        check(&origin, &wanted)
    });
}

/// However the bills of two busy gateways mix, the origin gets no more than the rate in any window, and no more than the
/// costs allow for long.
#[test]
fn two_busy_gateways_never_let_out_more_than_the_rate() {
    const RATE: u32 = 100;
    const WINDOW: Duration = Duration::from_millis(300);
    let _machine = quarter_alone();
    let redis = Redis::start();
    // What a request is charged before and after, and the least and the most that leave a second.
    for (estimate, says, least, most) in [(1, 2, 46, 52), (3, 1, 33, 102), (2, 3, 25, 36)] {
        best_of_three(|attempt| {
            let origin = billing();
            let rate = format!("{RATE}r/s");
            let [one, other] = two(&origin, &redis, &rate, "", ", burst = 40", estimate);
            let target = format!("/?key={estimate}.{attempt}&says={says}");
            let mut span = None;
            under_load(&[&one, &other], 12, &target, Duration::ZERO, || {
                thread::sleep(Duration::from_secs(1));
                let began = now();
                thread::sleep(Duration::from_secs(3));
                span = Some((began, now()));
            });
            let (from, until) = span.expect("it ran");
            let moments = origin.moments("key=");
            let count = count_within(&moments, from, until);
            let seconds = (until - from).as_secs_f64();
            #[allow(clippy::cast_precision_loss)]
            let rate = count as f64 / seconds;
            if !(f64::from(least)..=f64::from(most)).contains(&rate) {
                return Err(format!("{estimate} for {says}: {rate:.1} a second"));
            }
            let fullest = moments
                .iter()
                .map(|it| count_within(&moments, *it, *it + WINDOW));
            let fullest = fullest.max().unwrap_or_default();
            // One more, and what a busy machine lets arrive late.
            if fullest > 30 + 1 + 4 {
                return Err(format!("{estimate} for {says}: {fullest} in {WINDOW:?}"));
            }
            Ok(())
        });
    }
}

#[test]
fn without_redis_a_gateway_bills_its_own_level() {
    let origin = billing();
    for (algorithm, limit) in [
        ("leaky_bucket", ", burst = 9, nodelay = true"),
        ("token_bucket", ", burst = 10"),
    ] {
        let mut redis = Redis::start();
        let more = format!("algorithm = \"{algorithm}\"");
        let [gateway, _] = two(&origin, &redis, "1r/h", &more, limit, 1);
        redis.kill();
        let answers = (0..9).map(|_| fetch(gateway.address(), "/?key=a&says=3").status);
        let passed = answers.filter(|status| *status == 200).count();
        assert_eq!(passed, 4, "{algorithm}");
    }
}

#[test]
fn two_gateways_bill_one_limit_by_all_five_algorithms() {
    let (origin, redis) = (billing(), Redis::start());
    let day = "10r/24h";
    for (algorithm, rate, limit) in [
        ("leaky_bucket", "1r/h", ", burst = 9, nodelay = true"),
        ("token_bucket", "1r/h", ", burst = 10"),
        ("fixed_window", day, ""),
        ("sliding_window_log", day, ""),
        ("sliding_window_counter", day, ""),
    ] {
        let more = format!("algorithm = \"{algorithm}\"");
        // Each is let through if its estimate fits: after three costs of 3, and after five of 1.
        for (estimate, says, wanted) in [(1, 3, 4), (5, 1, 6)] {
            let gateways = two(&origin, &redis, rate, &more, limit, estimate);
            let passed = |key: &str| {
                let answers = (0..9).map(|nth: usize| {
                    let target = format!("/?key={key}{estimate}&says={says}");
                    let status = fetch(gateways[nth % 2].address(), &target).status;
                    thread::sleep(20 * MS);
                    status
                });
                answers.filter(|status| *status == 200).count()
            };
            let mut all = passed("a");
            if all > wanted && rate == day {
                // A new window may have begun during the test, but not twice.
                all = passed("b");
            }
            assert_eq!(all, wanted, "{algorithm}, estimate {estimate}");
        }
    }
}
