//! Tests of `drip top` with a gateway under load.

use crate::support::{Gateway, Origin, one_zone};
use crate::top::pty::Pty;

#[test]
fn a_gateway_under_load_is_seen_as_it_is() {
    let origin = Origin::start();
    let file = |rate: &str| one_zone(&origin, rate, "burst = 40").replace("$arg_key", "$host");
    let gateway = Gateway::start(&file("1r/s"));
    let mut pty = Pty::top(&gateway.site.admin.to_string(), (120, 36));
    let idle = pty.wait_for(&["gateway.toml: ok", "z     1r/s", "in_use"]);
    assert!(!idle.contains("waiting in"), "{idle}");
    let crowd: Vec<_> = (0..60).map(|_| gateway.ask("/")).collect();
    pty.wait_for(&["waiting in", "127.0.0.1", "z rejects"]);
    gateway.site.write(&file("100r/s"));
    pty.wait_for(&["z     100r/s"]);
    gateway.site.write(&file("100 a fortnight"));
    pty.wait_for(&["gateway.toml: broken since", "line 10"]);
    let statuses = crowd.into_iter().map(|mut it| it.answer().status);
    let accepted = statuses.filter(|status| *status == 200).count();
    // One more for each second that the crowd took to arrive.
    assert!((41..50).contains(&accepted), "{accepted}");
    pty.press("q");
    assert!(pty.ended().success());
}
