//! Places in several zones: a request takes all of them or none.

use limit::Limit;
use tokio::sync::Semaphore;

use super::answer::Rejection;
use super::turn::Turn;

/// Attempts in vain after which a request may [keep](KEEPING) the places that it gets.
const PATIENCE: usize = 8;

/// The right to keep places while waiting for others. One request of the process has it at a time.
///
/// Without it, a request might never find all its places free at one instant. All other requests
/// hold no places while they wait, so there is no deadlock within a process. Each gateway that
/// shares the zones has such a request, and all of them take places in the same order.
static KEEPING: Semaphore = Semaphore::const_new(1);

/// Takes the places of a request that has these turns, under these limits.
///
/// Returns the turns with their places. The order of the zones is the same for all requests.
///
/// The request waits in the line of one zone at a time, in the order of its arrival. Once it has a
/// place there, it looks whether places in the other zones are free. If one is missing, it gives
/// back all its places, and waits in the line of that zone.
///
/// # Errors
///
/// A zone rejects the request. Returns the rejection and the index of its limit. All turns are
/// given back then.
pub async fn take_places<'z>(
    mut turns: Vec<Turn<'z>>,
    limits: &[Limit],
) -> Result<Vec<Turn<'z>>, (usize, Rejection)> {
    match take_all(&mut turns, limits).await {
        Ok(()) => Ok(turns),
        Err((index, rejection)) => {
            turns.remove(index).withdraw();
            turns.into_iter().for_each(Turn::reject_elsewhere);
            Err((index, rejection))
        }
    }
}

async fn take_all(turns: &mut [Turn<'_>], limits: &[Limit]) -> Result<(), (usize, Rejection)> {
    let (mut in_vain, mut first) = (0, 0);
    loop {
        let may_keep = in_vain >= PATIENCE;
        let keeping = may_keep.then(|| KEEPING.try_acquire().ok()).flatten();
        let mut order: Vec<usize> = (0..turns.len()).collect();
        if keeping.is_none() {
            order[..=first].rotate_right(1);
        }
        let mut taken = 0;
        for index in &order {
            let waits = taken == 0 || keeping.is_some();
            let has_place = turns[*index].ask_place(limits[*index], waits).await;
            if !has_place.map_err(|rejection| (*index, rejection))? {
                break;
            }
            taken += 1;
        }
        if taken == order.len() {
            return Ok(());
        }
        for index in &order[..taken] {
            turns[*index].put_place_back();
        }
        (in_vain, first) = (in_vain + 1, order[taken]);
    }
}
