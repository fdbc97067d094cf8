//! The blog's `/compute` without the web: the very loop of the subject axum-sqlx, called in turn.
//!
//! `prime-loop CALLS`: prints how long each batch of ten calls took, in nanoseconds a call.

#[path = "../../../blog/subjects/axum-sqlx/src/compute.rs"]
#[expect(dead_code, reason = "its page is the web's part")]
mod compute;

use std::hint::black_box;
use std::time::Instant;

const BATCH: u32 = 10;

fn main() {
    let calls = std::env::args().nth(1).and_then(|calls| calls.parse().ok()).unwrap_or(100_u32);
    let mut sum = 0;
    for _ in 0..calls.div_ceil(BATCH) {
        let began = Instant::now();
        for _ in 0..BATCH {
            sum = compute::sum_of_primes(black_box(20_000));
        }
        println!("{}", began.elapsed().as_nanos() / u128::from(BATCH));
    }
    assert_eq!(sum, 21_171_191, "the sum of the primes below 20,000");
}
