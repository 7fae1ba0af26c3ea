//! Tests of examples of limits: an API with plans, logins, a blog, crawlers, several gateways.

use std::time::Duration;

use hyper::Request;
use tokio::net::TcpStream;

use crate::documents::examples::{Example, best_of_three, curl, page, run};
use crate::programs::redis::Redis;
use crate::support::{Client, Exchange, Origin, Site, eventually, now, side_by_side};

#[test]
fn the_commands_of_the_public_api_print_what_the_page_says() {
    let origin = Origin::start();
    best_of_three(|| Example::start("public-api", &origin, &[]));
}

#[test]
fn the_commands_of_the_ticket_sale_print_what_the_page_says() {
    let origin = Origin::start();
    best_of_three(|| Example::start("ticket-sale", &origin, &[]));
}

#[test]
fn crawlers_wait_and_are_a_class_of_their_own() {
    let origin = Origin::start();
    best_of_three(|| Example::start("crawlers", &origin, &[]));

    let example = Example::start("crawlers", &origin, &[]);
    let address = example.gateway.address();
    let ask = |program: &str, path: &str| curl(address, path, &["-A", program]);
    for crawler in [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 AppleWebKit/537.36; compatible; GPTBot/1.2; +https://openai.com/gptbot",
        "Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (compatible; Bytespider)",
        "meta-externalagent/1.1",
    ] {
        assert_eq!(ask(crawler, "/"), 200);
    }
    let person = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let phone = "Mozilla/5.0 (Linux; Android 14; CUBOT X90) AppleWebKit/537.36 Chrome/140.0";
    assert_eq!(ask(person, "/"), 200);
    assert_eq!(ask(phone, "/"), 200);
    for _ in 0..20 {
        assert_eq!(ask("GPTBot/1.2", "/robots.txt"), 200);
    }
    let metrics = example.gateway.metrics();
    let class = |name| {
        let labels = [("origin", "site"), ("class", name)];
        metrics.count("drip_origin_class_requests_total", &labels)
    };
    assert_eq!((class("crawlers"), class("people")), (4, 22));
}

#[test]
fn the_commands_of_cors_print_what_the_page_says() {
    let origin = Origin::start();
    best_of_three(|| Example::start("cors", &origin, &[]));

    let example = Example::start("cors", &origin, &[]);
    let before = origin.arrivals().len();
    #[rustfmt::skip]
    let preflight = [
        "-X", "OPTIONS", "-H", "Origin: https://other.example", "-H",
        "Access-Control-Request-Method: PUT",
    ];
    for _ in 0..20 {
        assert_eq!(curl(example.gateway.address(), "/", &preflight), 204);
    }
    assert_eq!(origin.arrivals().len(), before);
}

/// Starts an application whose only password is `right`.
fn application() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        if exchange.target().split('?').next() != Some("/login") {
            return exchange.reply(b"ok");
        }
        let body = exchange.body()?;
        let answer = if body == b"password=right" {
            "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"
        } else {
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
        };
        exchange.send(answer.as_bytes())
    })
}

#[test]
fn the_sixth_wrong_password_is_rejected_and_right_ones_do_not_count() {
    let origin = application();
    let example = Example::start("login-protection", &origin, &[]);
    let address = example.gateway.address();
    let right = ["-d", "password=right"];
    for _ in 0..12 {
        assert_eq!(curl(address, "/login", &right), 302);
    }
    example.works();
    let before = origin.moments("/login").len();
    assert_eq!(curl(address, "/login", &right), 429);
    assert_eq!(origin.moments("/login").len(), before);
    // Reading the form is no attempt, and the rest of the site is not limited.
    assert_eq!(curl(address, "/login", &[]), 401);
    assert_eq!(curl(address, "/x", &["-d", "a"]), 200);
}

/// Over HTTP/2 the sixth wrong password is rejected at once, too.
///
/// One connection sends many attempts at once, and none of them waits.
#[tokio::test(flavor = "multi_thread")]
async fn over_http_2_the_sixth_wrong_password_is_rejected_at_once_too() {
    let origin = application();
    let example = Example::start("login-protection", &origin, &[]);
    let address = example.gateway.address();
    let tcp = TcpStream::connect(address).await.expect("a connection");
    let (client, connection) = h2::client::handshake(tcp).await.expect("HTTP/2");
    tokio::spawn(connection);
    let (since, mut answers) = (now(), Vec::new());
    for _ in 0..100 {
        let mut client = client.clone().ready().await.expect("a stream");
        let request = Request::post("http://a.test/login");
        let request = request.body(()).expect("a request");
        let (answer, mut body) = client.send_request(request, false).expect("a request");
        body.send_data("password=wrong".into(), true)
            .expect("a body");
        answers.push(answer);
    }
    let mut wrong = 0;
    for answer in answers {
        let answer = answer.await.expect("an answer");
        if answer.status() == 401 {
            wrong += 1;
        } else {
            assert_eq!(answer.status(), 429);
            let received = answer.headers()["retry-after"].to_str().expect("text");
            let is_soon = received.parse::<u32>().is_ok_and(|it| it <= 60);
            assert!(is_soon, "{received}");
        }
    }
    // The next slot is free after a minute, and nothing has waited for it.
    assert_eq!(wrong, 5);
    assert!(since.elapsed() < Duration::from_secs(50));
    // The rejected attempts do not delay the next request from the same address.
    let mut client = Client::connect(address);
    client.send(b"POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 429);
    let received = answer.field("retry-after").expect("a time");
    let is_soon = received.parse::<u32>().is_ok_and(|it| it <= 60);
    assert!(is_soon, "{received}");
}

#[test]
fn wordpress_is_strict_with_logins_only() {
    let origin = Origin::start();
    let example = Example::start("wordpress", &origin, &[]);
    example.works();
    let address = example.gateway.address();
    // XML-RPC shares the bucket of the logins.
    assert_eq!(curl(address, "/xmlrpc.php", &["-d", "x"]), 429);
    assert_eq!(curl(address, "/wp-login.php", &[]), 200);
    for _ in 0..9 {
        assert_eq!(curl(address, "/a-page/", &[]), 200);
    }
    let metrics = example.gateway.metrics();
    let rejected = [("zone", "logins"), ("reason", "burst")];
    assert_eq!(metrics.count("drip_zone_rejections_total", &rejected), 2);
}

#[test]
fn no_spelling_of_a_login_avoids_its_limit() {
    let origin = Origin::start();
    for (name, burst, period, paths) in [
        (
            "login-protection",
            5,
            60,
            "/LOGIN /login/ //login /Login?x=1 /%6Cogin /x/..;/login /login;x",
        ),
        (
            "wordpress",
            3,
            10,
            "//wp-login.php /wp-login.php/x /WP-Login.php /blog/wp-login.php?a /wp-content/../wp-login.php \
             /xmlrpc.php/x //xmlrpc.php /wp%2dlogin.php",
        ),
    ] {
        let paths: Vec<_> = paths.split(' ').collect();
        let example = Example::start(name, &origin, &[]);
        let address = example.gateway.address();
        let ask = |path| curl(address, path, &["--path-as-is", "-d", "a"]);
        let began = now();
        let asked = paths.iter().cycle().take(20);
        let passed = asked.filter(|path| ask(path) != 429).count();
        let most = burst + 1 + usize::try_from(began.elapsed().as_secs() / period).expect("few");
        let is_within_burst = (burst..=most).contains(&passed);
        assert!(is_within_burst, "{name}: {passed}, not {most}");
    }
}

#[test]
fn no_search_of_wordpress_avoids_its_limit() {
    let origin = Origin::start();
    let example = Example::start("wordpress", &origin, &[]);
    let address = example.gateway.address();
    let search = |nth: usize| {
        let paths = [
            "",
            "index.php",
            "wp-content/none.css",
            "a-page/",
            "wp-json/wp/v2/posts",
        ];
        let names = ["s", "%73", "s[]", "S", "search"];
        format!("/{}?{}={nth}", paths[nth % 5], names[nth / 5 % 5])
    };
    let began = now();
    let statuses = side_by_side(0..50, |nth| curl(address, &search(nth), &["--globoff"]));
    let passed = statuses.iter().filter(|status| **status == 200).count();
    // New texts arrive at 2 per second. The other bucket has 1 per second and lets 5 wait.
    let most = 2 + 6 + usize::try_from(3 * began.elapsed().as_secs() + 3).expect("few");
    assert!(passed >= 3 && passed <= most, "{passed}, not {most}");
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn several_gateways_give_a_client_its_burst_once() {
    let (redis, origin) = (Redis::start(), Origin::start());
    let url = redis.url();
    let mut failures = Vec::new();
    for _ in 0..3 {
        redis.ask("FLUSHALL");
        // A machine that is busy with other tests is slower than a network.
        let replaced = [
            ("redis://127.0.0.1:6379/0", url.as_str()),
            ("timeout = \"50ms\"", "timeout = \"2s\""),
            ("rate  = \"1r/s\"", "rate  = \"10r/m\""),
        ];
        let first = Example::start("several-gateways", &origin, &replaced);
        let mut text = page::Page::read("several-gateways").file().to_owned();
        for (from, to) in replaced {
            text = text.replace(from, to);
        }
        let second = run(Site::new(), &text, &origin);
        let addresses = [
            ("127.0.0.1:8080", first.gateway.address()),
            ("127.0.0.1:8081", second.address()),
        ];
        match first.page.try_it(&addresses) {
            Ok(()) => {
                assert_eq!(second.count("drip_store_up", &[]), 1);
                return;
            }
            Err(failure) => failures.push(failure),
        }
    }
    panic!("{}", failures.join("\n"));
}

#[test]
fn behind_a_load_balancer_the_client_is_the_one_that_it_names() {
    let origin = Origin::start();
    let peers = [("\"10.0.0.0/8\"", "\"10.0.0.0/8\", \"127.0.0.1\"")];
    best_of_three(|| Example::start("behind-a-load-balancer", &origin, &peers));

    let example = Example::start("behind-a-load-balancer", &origin, &peers);
    let address = example.gateway.address();
    for _ in 0..20 {
        assert_eq!(curl(address, "/health", &[]), 200);
    }
    curl(
        address,
        "/",
        &["-H", "X-Forwarded-For: 203.0.113.9, 192.0.2.1"],
    );
    eventually("the client is a key", || {
        let keys = example.gateway.admin("/api/zones/per_client/keys");
        let keys = keys.expect("an admin port").text();
        keys.contains("192.0.2.1") && !keys.contains("203.0.113.9")
    });
}
