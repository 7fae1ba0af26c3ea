//! Tests of a reload while leaders are at the origin and followers wait.

use super::{ALL, LIMITS, ask, file, how, request, wait_until_passed};
use crate::support::visitor::reload;
use crate::support::{Client, Gateway, HoldingOrigin, Origin, fetch_with};

/// Sends a leader and its followers on connections that stay open.
fn wait(gateway: &Gateway, origin: &HoldingOrigin, target: &str) -> Vec<Client> {
    let at = gateway.address();
    let before = origin.targets().len();
    let mut clients = vec![ask(at, target, "")];
    origin.origin.wait_for(before + 1);
    clients.extend((0..4).map(|_| ask(at, target, "")));
    clients
}

/// Fails unless the first led, the others followed, and each gets exactly one response.
fn get_one_each(clients: &mut [Client]) {
    for (nth, client) in clients.iter_mut().enumerate() {
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        let expected = if nth == 0 { "leader" } else { "follower" };
        assert_eq!(how(&answer), expected, "{nth}");
        // The next response on the connection answers the next request.
        client.send(request("DELETE", "/next", "").as_bytes());
        let next = client.answer();
        assert_eq!((next.status, how(&next)), (200, ""), "{nth}");
    }
}

#[test]
fn those_who_wait_get_their_answer_when_keep_changes_and_the_new_one_counts_for_what_is_kept() {
    let origin = HoldingOrigin::of("held");
    let hour = file(origin.origin.address, "keep = \"1h\"");
    let gateway = Gateway::start(&file(origin.origin.address, ""));
    let at = gateway.address();
    let mut clients = wait(&gateway, &origin, "/held");
    wait_until_passed(&gateway, 5);
    reload(&gateway, &hour);
    // An equal request after the reload waits with the others.
    clients.push(ask(at, "/held", ""));
    wait_until_passed(&gateway, 6);
    origin.release("/held");
    get_one_each(&mut clients);
    assert_eq!(how(&fetch_with(at, "/a", "")), "leader");
    assert_eq!(how(&fetch_with(at, "/a", "")), "kept");
    // Kept responses expire by the new file.
    reload(&gateway, &file(origin.origin.address, ""));
    assert_eq!(how(&fetch_with(at, "/a", "")), "leader");
}

#[test]
fn an_answer_of_the_origin_of_before_is_given_to_nobody_who_comes_after_the_reload() {
    let before = HoldingOrigin::of("held");
    let after = Origin::answering(|exchange| exchange.reply(b"new"));
    let hour = "keep = \"1h\"\nstale = \"1h\"";
    let gateway = Gateway::start(&file(before.origin.address, hour));
    let at = gateway.address();
    assert_eq!(fetch_with(at, "/kept", "").text(), "ok");
    assert_eq!(how(&fetch_with(at, "/kept", "")), "kept");
    let mut clients = wait(&gateway, &before, "/held");
    wait_until_passed(&gateway, 7);
    reload(&gateway, &file(after.address, hour));
    // Requests do not wait for a leader at the old origin.
    for target in ["/held", "/kept"] {
        let first = fetch_with(at, target, "");
        assert_eq!((how(&first), first.text().as_str()), ("leader", "new"));
        assert_eq!(fetch_with(at, target, "").text(), "new");
    }
    before.release("/held");
    get_one_each(&mut clients);
    for target in ["/held", "/kept"] {
        let kept = fetch_with(at, target, "");
        assert_eq!((how(&kept), kept.text().as_str()), ("kept", "new"));
    }
    let of_held = |it: &String| it == "/held";
    assert_eq!(before.targets().iter().filter(|it| of_held(it)).count(), 1);
    // The old origin is back. Responses of the other origin must not be used, either.
    reload(&gateway, &file(before.origin.address, hour));
    assert_ne!(fetch_with(at, "/kept", "").text(), "new");
}

#[test]
fn without_collapse_newcomers_go_for_themselves_and_those_who_wait_get_their_answer() {
    let origin = HoldingOrigin::of("held");
    let address = origin.origin.address;
    let gateway = Gateway::start(&file(address, "keep = \"1h\""));
    let at = gateway.address();
    assert_eq!(how(&fetch_with(at, "/kept", "")), "leader");
    let mut clients = wait(&gateway, &origin, "/held");
    wait_until_passed(&gateway, 6);
    let without = format!(
        "[origins.app]\nservers = [\"http://{address}\"]\n{ALL}\n[[routes]]\npath = \"/\"\norigin = \"app\"\nheaders = [\"shared\"]\n{LIMITS}\n"
    );
    reload(&gateway, &without);
    let before = origin.targets().len();
    let mut own: Vec<_> = (0..3).map(|_| ask(at, "/held", "")).collect();
    origin.origin.wait_for(before + 3);
    for nth in 1..=2 {
        assert_eq!(how(&fetch_with(at, "/kept", "")), "");
        origin.origin.wait_for(before + 3 + nth);
    }
    assert_eq!(origin.targets().len(), before + 5);
    origin.release("/held");
    get_one_each(&mut clients);
    for own in &mut own {
        let answer = own.answer();
        assert_eq!((answer.status, how(&answer)), (200, ""));
    }
}
