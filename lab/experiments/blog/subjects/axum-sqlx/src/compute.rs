//! A page that needs the processor alone.

use std::hint::black_box;

/// The sum of the primes below 20,000, by trial division.
pub async fn page() -> String {
    sum_of_primes(black_box(20_000)).to_string()
}

// Not inlined, so that a profile can name it: else its time looks like the router's.
#[inline(never)]
pub(crate) fn sum_of_primes(limit: i64) -> i64 {
    (2..limit).filter(|&number| is_prime(number)).sum()
}

fn is_prime(number: i64) -> bool {
    let mut divisor = 2;
    while divisor * divisor <= number {
        if number % divisor == 0 {
            return false;
        }
        divisor += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_primes_below_twenty_thousand_sum_to_21171191() {
        assert_eq!(super::sum_of_primes(20_000), 21_171_191);
    }
}
