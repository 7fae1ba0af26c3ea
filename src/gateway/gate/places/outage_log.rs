use limit::Borrowing;

use crate::zone::StoreRefusal;

/// Logs that the pool of this origin's places cannot be called, and how the gateway goes on.
pub(super) fn tell_out(origin: &str, borrowing: Borrowing, most: usize, why: &StoreRefusal) {
    let StoreRefusal { reason, remedy, .. } = why;
    let what = if why.is_answer {
        "the store refuses the calls of the origin's pool of places"
    } else {
        "the store does not answer"
    };
    match borrowing {
        Borrowing::Alone(part) => tracing::warn!(
            origin,
            error = reason,
            "{what}, and the lease of the places has ended: this gateway goes on alone with {part} of {most} places; {remedy}"
        ),
        Borrowing::Pool => tracing::warn!(
            origin,
            error = reason,
            "{what}, and the lease of the places has ended: this gateway starts no requests; {remedy}"
        ),
    }
}
