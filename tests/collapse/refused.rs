//! Tests of responses whose status concerns one client, and of origins that refuse everyone.

use super::{Hold, ask, file, how, wait_until_passed};
use crate::support::{Client, Gateway, Origin};

/// Starts an origin that refuses requests with `X-Junk` once it is open, and serves all others.
fn origin(status: &'static str) -> (Origin, Hold) {
    let hold = Hold::default();
    let of_origin = hold.clone();
    let origin = Origin::answering(move |exchange| {
        of_origin.wait();
        if exchange.field("x-junk").is_none() {
            return exchange.reply(b"page");
        }
        let head =
            format!("HTTP/1.1 {status}\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\n");
        exchange.send(format!("{head}no").as_bytes())
    });
    (origin, hold)
}

fn start(origin: &Origin) -> Gateway {
    let file = file(origin.address, "");
    Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{file}"))
}

/// Sends requests of these clients one after the other, each once the previous one has arrived.
///
/// `before`: number of earlier requests.
fn ask_as(gateway: &Gateway, before: i64, clients: &[&str], fields: &str) -> Vec<Client> {
    let asked = clients.iter().zip(before + 1..).map(|(client, count)| {
        let fields = format!("X-Forwarded-For: {client}\r\n{fields}");
        let client = ask(gateway.address(), "/page", &fields);
        wait_until_passed(gateway, count);
        client
    });
    asked.collect()
}

#[test]
fn what_one_client_is_refused_is_no_matter_of_the_others() {
    for status in ["403 No", "302 No", "200 OK\r\nSet-Cookie: a=b"] {
        let (origin, hold) = origin(status);
        let gateway = start(&origin);
        // The second request would lead next if it were of another client.
        let refused = ask_as(&gateway, 0, &["10.0.0.1"; 2], "X-Junk: a\r\n");
        let others = ask_as(&gateway, 2, &["10.0.0.2", "10.0.0.3", "10.0.0.4"], "");
        origin.wait_for(1);
        hold.open();
        let answers: Vec<_> = refused
            .into_iter()
            .chain(others)
            .map(|mut it| it.answer())
            .collect();
        let statuses: Vec<_> = answers.iter().map(|it| it.status.to_string()).collect();
        assert_eq!(statuses, [&status[..3], "200", "200", "200", "200"]);
        let hows: Vec<_> = answers.iter().map(how).collect();
        let expected = ["", "follower", "leader", "follower", "follower"];
        assert_eq!(hows, expected, "{status}");
        assert_eq!(origin.arrivals().len(), 2, "{status}");
        // A request alone changes nothing, either.
        let refused = ask_as(&gateway, 5, &["10.0.0.1"], "X-Junk: a\r\n")
            .remove(0)
            .answer();
        assert_eq!(refused.status.to_string(), status[..3]);
        let next = ask_as(&gateway, 6, &["10.0.0.2"], "").remove(0).answer();
        assert_eq!(how(&next), "leader", "{status}");
    }
}

#[test]
fn after_two_refusals_in_a_row_the_next_answer_that_may_be_shared_ends_that() {
    let (origin, hold) = origin("403 No");
    let gateway = start(&origin);
    let refused = ask_as(
        &gateway,
        0,
        &["10.0.0.1", "10.0.0.2", "10.0.0.3"],
        "X-Junk: a\r\n",
    );
    origin.wait_for(1);
    hold.open();
    for mut client in refused {
        assert_eq!(client.answer().status, 403);
    }
    assert_eq!([gateway.shared("leader"), gateway.shared("alone")], [2, 1]);
    // The first request learns that the page may be shared.
    for before in 3..6 {
        let page = ask_as(&gateway, before, &["10.0.0.4"], "")
            .remove(0)
            .answer();
        assert_eq!((page.status, how(&page)), (200, "leader"));
    }
    assert_eq!(gateway.shared("alone"), 1);
}

#[test]
fn an_origin_that_refuses_all_has_all_side_by_side() {
    const COUNT: usize = 20;
    let (origin, hold) = origin("302 Elsewhere");
    let gateway = start(&origin);
    let junk = "X-Junk: a\r\n";
    let first = ask_as(&gateway, 0, &["10.0.0.1", "10.0.0.2", "10.0.0.3"], junk);
    hold.open();
    for mut client in first {
        assert_eq!(client.answer().status, 302);
    }
    assert_eq!(origin.arrivals().len(), 3);
    hold.close();
    let clients = ["10.0.0.5"; COUNT];
    let all = ask_as(&gateway, 3, &clients, junk);
    // None of them waits for the response of another one.
    origin.wait_for(3 + COUNT);
    hold.open();
    for mut client in all {
        assert_eq!(client.answer().status, 302);
    }
}
