//! Conversions between whole numbers and floating-point numbers.

/// Converts to the nearest floating-point number: exact below 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "callers need only the nearest number"
)]
pub fn to_float(whole: u64) -> f64 {
    whole as f64
}

/// Removes the fraction. A negative or too large number becomes the nearest one that fits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "documented above"
)]
pub fn to_whole(number: f64) -> u64 {
    number as u64
}
