//! CPU time in functions with names of their own.

use std::hint::black_box;

use crate::calls::thread_cpu;

/// A function that burns CPU.
pub struct Function {
    /// What it is called.
    pub name: &'static str,
    run: fn(u64) -> u64,
}

/// All of them.
pub const FUNCTIONS: [Function; 4] = [
    Function { name: "alder", run: alder },
    Function { name: "birch", run: birch },
    Function { name: "cedar", run: cedar },
    Function { name: "durian", run: durian },
];

/// The next number of a generator of Marsaglia's: enough to be out of step with anything.
fn next(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

macro_rules! burner {
    ($name:ident, $seed:literal) => {
        #[inline(never)]
        fn $name(iterations: u64) -> u64 {
            let mut state = black_box($seed);
            for _ in 0..iterations {
                state = next(state);
            }
            black_box(state)
        }
    };
}

burner!(alder, 0x9e37_79b9_7f4a_7c15);
burner!(birch, 0xbf58_476d_1ce4_e5b9);
burner!(cedar, 0x94d0_49bb_1331_11eb);
burner!(durian, 0xd6e8_feb8_6659_fd93);

/// How many iterations take a microsecond here, by this thread's own clock.
pub fn iterations_per_microsecond() -> u64 {
    const TRIAL: u64 = 4_000_000;
    let before = thread_cpu();
    alder(TRIAL);
    let used = thread_cpu().saturating_sub(before).max(1);
    (TRIAL * 1_000 / used).max(1)
}

/// Burns about as many microseconds in each function as is asked, and says how many nanoseconds
/// each truly took. Lengths vary by a third up and down, so that nothing that looks at regular
/// times keeps step with them.
pub fn run(
    microseconds: &[u32; FUNCTIONS.len()],
    iterations: u64,
    chance: &mut u64,
) -> [u64; FUNCTIONS.len()] {
    let mut burnt = [0; FUNCTIONS.len()];
    let mut before = thread_cpu();
    for ((function, &wanted), burnt) in FUNCTIONS.iter().zip(microseconds).zip(&mut burnt) {
        *chance = next(*chance);
        let factor = 683 + *chance % 683;
        (function.run)(u64::from(wanted) * iterations * factor / 1_024);
        let after = thread_cpu();
        *burnt = after.saturating_sub(before);
        before = after;
    }
    burnt
}
