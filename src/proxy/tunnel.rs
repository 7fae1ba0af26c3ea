use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::answer::Body;
use super::served::Served;

/// Carries bytes both ways, once both connections have changed protocols, until both sides have ended or one breaks.
/// The request is at the origin, and not yet served, as long.
pub(super) async fn carry(
    client: OnUpgrade,
    origin: OnUpgrade,
    at_origin: Body,
    mut served: Box<Served>,
) {
    if let (Ok(client), Ok(origin)) = tokio::join!(client, origin) {
        let (mut client, mut origin) = (TokioIo::new(client), TokioIo::new(origin));
        if let Ok((_, to_client)) = copy_bidirectional(&mut client, &mut origin).await {
            served.sent(to_client);
        }
    }
    drop(at_origin);
}
