//! Prints the tables of `SIMULATION.md`:
//! `cargo run -p assay-analyses --example simulation > analyses/SIMULATION.md`

#[path = "../tests/simulation/model.rs"]
#[expect(dead_code, reason = "the tests of the rules use the rest")]
mod model;

use std::io::{self, Write};

use model::{Design, Machine, Order};

const SEED: u64 = 20_261_018;
const TRIALS: u64 = 10_000;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(INTRODUCTION.as_bytes())?;
    rules(&mut out)?;
    out.write_all(ORDERS.as_bytes())?;
    orders(&mut out)
}

const INTRODUCTION: &str = "\
# When is a difference real? The rules, tried on known truth

A made-up machine sends laps whose log rate has normal noise and drifts as a random walk of 0.5 % a
lap. Each arm is compared with the reference's lap of the same round; the mean log ratio over
rounds gets a 95 % interval by Student's t. Orders are the rows of a Williams square, each followed
by its reverse. 10,000 trials a line, fixed seed; this file is the output of
`cargo run -p assay-analyses --example simulation`.

- **false alarms**: cells called faster or slower although all arms are equal.
- **any, Holm**: trials in which any cell is, after Holm's correction over the trial's cells.
- **3 % seen**: cells called faster when every arm truly is 3 % faster than the reference.
- **3 % seen, Holm**: the same after the correction.
- **equal shown**: equal arms called indistinguishable (whole interval within ±3 %).

| noise a lap | arms | rounds | false alarms | any, Holm | 3 % seen | 3 % seen, Holm | equal shown |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const ORDERS: &str = "
## In which order to send the laps

12 arms, 6 rounds, 1 % noise. *Sequential*: all laps of an arm, then all of the next. *Fixed*:
rounds, always in the same order. *Balanced*: as above. *Neighbours*: a lap of the reference before
and after each arm's lap, which takes 133 laps where the others take 72.

| order | drift | laps | false alarms | 3 % seen |
| --- | --- | ---: | ---: | ---: |
";

fn rules(out: &mut impl Write) -> io::Result<()> {
    for noise in [0.01, 0.02, 0.05] {
        for arms in [2, 4, 12] {
            for rounds in [3, 6, 10] {
                let machine = Machine { noise, walk: 0.005, slope: 0.0 };
                let design = Design { machine, order: Order::Balanced, arms, rounds, effect: 0.0 };
                let equal = design.run(TRIALS, SEED);
                let faster = Design { effect: 0.03f64.ln_1p(), ..design }.run(TRIALS, SEED);
                writeln!(
                    out,
                    "| {:.0} % | {arms} | {rounds} | {} | {} | {} | {} | {} |",
                    noise * 100.0,
                    percent(equal.different()),
                    percent(equal.family()),
                    percent(faster.seen()),
                    percent(faster.seen_corrected()),
                    percent(equal.equal()),
                )?;
            }
        }
    }
    Ok(())
}

fn orders(out: &mut impl Write) -> io::Result<()> {
    let walk = Machine { noise: 0.01, walk: 0.005, slope: 0.0 };
    let steady = Machine { noise: 0.01, walk: 0.0, slope: 0.005 };
    for (drift, machine) in [("random walk, 0.5 % a lap", walk), ("steady, 0.5 % a lap", steady)] {
        for order in [Order::Sequential, Order::Fixed, Order::Balanced, Order::Neighbours] {
            let design = Design { machine, order, arms: 12, rounds: 6, effect: 0.0 };
            let faster = Design { effect: 0.03f64.ln_1p(), ..design }.run(TRIALS, SEED);
            writeln!(
                out,
                "| {order:?} | {drift} | {} | {} | {} |",
                if order == Order::Neighbours { 133 } else { 72 },
                percent(design.run(TRIALS, SEED).different()),
                percent(faster.seen()),
            )?;
        }
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
