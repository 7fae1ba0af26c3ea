//! Permits of a request with several limits: takes the permits of all its zones, or none.

use limit::Limit;
use tokio::sync::Semaphore;

use super::admission::ZoneAdmission;
use super::answer::Rejection;

/// Number of failed attempts after which a request may [keep](KEEPING) the permits that it got.
const ATTEMPTS_BEFORE_KEEPING: usize = 8;

/// Right to keep permits while waiting for others. One request of the process has it at a time.
///
/// Without it, a request might never find all its permits free at the same instant. All other
/// requests hold no permits while they wait, so there is no deadlock in the process. There is none
/// between gateways either: each has one such request, and all take permits in the same order.
static KEEPING: Semaphore = Semaphore::const_new(1);

/// Takes the permits of a request: for each admission, one under the limit with the same index.
///
/// Returns the admissions with their permits. The order of the zones is the same for all requests.
///
/// The request waits in the queue of one zone at a time, in the order of arrival. Once it has a
/// permit there, it tries to take the permits of the other zones. If one is not free, it returns
/// all its permits, and waits in the queue of that zone.
///
/// # Errors
///
/// A zone rejects the request. Returns the rejection and the index of its limit. Then all
/// admissions have been given up.
pub async fn take_permits<'z>(
    mut admissions: Vec<ZoneAdmission<'z>>,
    limits: &[Limit],
) -> Result<Vec<ZoneAdmission<'z>>, (usize, Rejection)> {
    match take_all(&mut admissions, limits).await {
        Ok(()) => Ok(admissions),
        Err((index, rejection)) => {
            // The zone that rejected the request has counted that. In the metrics of the other
            // zones, the request counts as rejected elsewhere.
            admissions.remove(index).withdraw();
            admissions
                .into_iter()
                .for_each(ZoneAdmission::reject_elsewhere);
            Err((index, rejection))
        }
    }
}

/// Takes the permits of all admissions, in as many attempts as needed.
async fn take_all(
    admissions: &mut [ZoneAdmission<'_>],
    limits: &[Limit],
) -> Result<(), (usize, Rejection)> {
    // Index of the zone that is asked first: the one without a free permit at the last attempt.
    let (mut failed_attempts, mut first) = (0, 0);
    loop {
        let may_keep = failed_attempts >= ATTEMPTS_BEFORE_KEEPING;
        let keeping = may_keep.then(|| KEEPING.try_acquire().ok()).flatten();
        let mut order: Vec<usize> = (0..admissions.len()).collect();
        // Begin with the zone that had no free permit last time. A request that keeps its permits
        // asks all zones in their common order instead.
        if keeping.is_none() {
            order[..=first].rotate_right(1);
        }
        let mut taken = 0;
        for &index in &order {
            // A request that holds a permit waits for another one only if it may keep it.
            let waits = taken == 0 || keeping.is_some();
            let answer = admissions[index].request_permit(limits[index], waits);
            let has_permit = answer.await.map_err(|rejection| (index, rejection))?;
            if !has_permit {
                break;
            }
            taken += 1;
        }
        if taken == order.len() {
            return Ok(());
        }
        for &index in &order[..taken] {
            admissions[index].put_permit_back();
        }
        (failed_attempts, first) = (failed_attempts + 1, order[taken]);
    }
}
