//! What a request asks for, read from its path without allocating.

use crate::burn::FUNCTIONS;
use crate::calls::CALLS;

/// Work of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Round trips to Postgres, those that prepare apart.
    pub trips: u32,
    /// Statements that are executed in these trips, spread evenly; a trip without one is a bare
    /// Sync.
    pub executions: u32,
    /// Round trips that only prepare a statement.
    pub prepares: u32,
    /// Bytes of the one value that each statement returns.
    pub row: u32,
    /// Redis commands.
    pub redis: u32,
    /// Round trips that they are sent in; as many as commands where nothing is said.
    pub flights: u32,
    /// How often each of [`CALLS`] is made.
    pub calls: [u32; CALLS.len()],
    /// How often a closed descriptor is closed again, which fails.
    pub failing: u32,
    /// Heap blocks.
    pub blocks: u32,
    /// Bytes of each.
    pub block: u32,
    /// Microseconds of CPU in each of [`FUNCTIONS`]; about, the ledger has what it truly was.
    pub burn: [u32; FUNCTIONS.len()],
    /// Messages to the partner thread, each of which is waited for.
    pub pings: u32,
    /// Naps that the partner takes before it answers.
    pub naps: u32,
    /// Microseconds of sleep.
    pub sleep: u32,
}

impl Work {
    /// Reads `/work?name=number&…`; `calls` and `burn` have lists: `calls=getpid:3,dup:1`.
    pub fn parse(path: &str) -> Result<Self, &'static str> {
        let (place, query) = path.split_once('?').unwrap_or((path, ""));
        if place != "/work" && place != "/truth" {
            return Err("there are /work and /truth");
        }
        let mut work = Self { row: 100, naps: 1, ..Self::default() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or("a parameter has no value")?;
            work.take(name, value)?;
        }
        work.check()
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let field = match name {
            "calls" => return fill(&mut self.calls, value, CALLS.iter().map(|call| call.name)),
            "burn" => {
                return fill(&mut self.burn, value, FUNCTIONS.iter().map(|function| function.name));
            }
            "trips" => &mut self.trips,
            "executions" => &mut self.executions,
            "prepares" => &mut self.prepares,
            "row" => &mut self.row,
            "redis" => &mut self.redis,
            "flights" => &mut self.flights,
            "failing" => &mut self.failing,
            "blocks" => &mut self.blocks,
            "block" => &mut self.block,
            "pings" => &mut self.pings,
            "naps" => &mut self.naps,
            "sleep" => &mut self.sleep,
            _ => return Err("there is no such parameter"),
        };
        *field = value.parse().map_err(|_| "a value is no number")?;
        Ok(())
    }

    fn check(mut self) -> Result<Self, &'static str> {
        if self.executions > 0 && self.trips == 0 {
            return Err("executions need a trip");
        }
        if self.flights == 0 || self.flights > self.redis {
            self.flights = self.redis;
        }
        // What a service sends at once arrives at once, which keeps the number of reads known.
        let in_one_trip = self.executions.div_ceil(self.trips.max(1));
        if in_one_trip > 32 || self.row > 4_000 || in_one_trip * self.row > 4_000 {
            return Err("a trip has at most 32 executions and 4,000 bytes");
        }
        if self.redis > 64 || self.blocks > 1_024 || self.naps > 255 {
            return Err("at most 64 Redis commands, 1,024 blocks and 255 naps");
        }
        Ok(self)
    }

    /// Statements that are executed in trip number `trip`.
    #[must_use]
    pub fn executions_in(&self, trip: u32) -> u32 {
        share(self.executions, self.trips, trip)
    }

    /// Commands that are sent in flight number `flight`.
    #[must_use]
    pub fn commands_in(&self, flight: u32) -> u32 {
        share(self.redis, self.flights, flight)
    }

    /// Whether CPU is burnt on purpose.
    #[must_use]
    pub fn burns(&self) -> bool {
        self.burn.iter().any(|&microseconds| microseconds > 0)
    }
}

/// A part of `all`, spread evenly over `places`, the first ones getting what is left over.
fn share(all: u32, places: u32, place: u32) -> u32 {
    let places = places.max(1);
    all / places + u32::from(place < all % places)
}

fn fill<'a>(
    numbers: &mut [u32],
    list: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), &'static str> {
    for item in list.split(',') {
        let (name, number) = item.split_once(':').ok_or("an item has no number")?;
        let place = names.clone().position(|known| known == name).ok_or("an item is unknown")?;
        let slot = numbers.get_mut(place).ok_or("an item is unknown")?;
        *slot = number.parse().map_err(|_| "an item's number is none")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read() {
        let work = Work::parse("/work?trips=4&executions=6&calls=getpid:3,dup:1&burn=birch:20");
        let work = work.unwrap();
        assert_eq!((work.trips, work.executions, work.calls.iter().sum::<u32>()), (4, 6, 4));
        assert_eq!([0, 1, 2, 3].map(|trip| work.executions_in(trip)), [2, 2, 1, 1]);
        assert!(work.burns());
    }

    #[test]
    fn flights_are_as_many_as_commands_where_nothing_is_said() {
        assert_eq!(Work::parse("/work?redis=5").unwrap().flights, 5);
        let work = Work::parse("/work?redis=5&flights=2").unwrap();
        assert_eq!([work.commands_in(0), work.commands_in(1)], [3, 2]);
    }

    #[test]
    fn what_cannot_be_done_as_asked_is_refused() {
        for path in [
            "/other",
            "/work?executions=1",
            "/work?trips=x",
            "/work?none=1",
            "/work?calls=fork:1",
            "/work?trips=1&executions=33",
            "/work?trips=1&executions=2&row=3000",
        ] {
            assert!(Work::parse(path).is_err(), "{path}");
        }
    }
}
