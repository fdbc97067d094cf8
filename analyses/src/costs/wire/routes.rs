//! Which route each response belongs to, and what a request of each costs where they are mixed.
//!
//! While one route alone is asked for, its cost is a quotient. Of a mixture nobody can say which
//! trip belongs to which request; but slices of time hold different mixtures, and the costs are
//! what explains their trips best (least squares over slices of 50 ms).

use std::collections::{HashMap, VecDeque};

use assay_captures::tcp::Connection;
use assay_captures::units::Moment;

use crate::regression::{Coefficient, through_origin};

/// Length of a slice.
const SLICE_NS: u64 = 50_000_000;
/// Slices that are kept: half a minute.
const SLICES: usize = 600;
/// Routes that are told apart; all others are one.
const ROUTES: usize = 12;
/// Requests of one connection that are waited for.
const PENDING: usize = 1_000;
/// Slices for each route, before a mixture is taken apart.
const SLICES_EACH: usize = 20;
/// The longest name.
const NAME: usize = 60;
const OTHERS: &str = "(others)";

/// What one route costs.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteCost {
    /// Method and path; segments with digits in them are `*`, and there is no query.
    pub route: String,
    /// Its responses since the last time.
    pub responses: u64,
    /// Trips to Postgres of one request.
    pub trips: RouteTrips,
}

/// Trips of a route's request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RouteTrips {
    /// Nothing else was asked for: a quotient.
    Counted(f64),
    /// Taken out of a mixture.
    Estimated(Coefficient),
    /// Why neither holds.
    NotMeasured(&'static str),
}

/// Responses and trips by slice.
#[derive(Debug, Default)]
pub(super) struct Routes {
    names: Vec<String>,
    pending: HashMap<Connection, VecDeque<usize>>,
    slices: VecDeque<Slice>,
    /// Responses by route since the last time.
    fresh: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Slice {
    number: u64,
    responses: [u32; ROUTES + 1],
    trips: u32,
}

impl Routes {
    pub(super) fn request(&mut self, connection: Connection, method: &[u8], target: &[u8]) {
        let route = self.route(name(method, target));
        let pending = self.pending.entry(connection).or_default();
        if pending.len() < PENDING {
            pending.push_back(route);
        }
    }

    pub(super) fn response(&mut self, connection: Connection, moment: Moment) {
        let asked = self.pending.get_mut(&connection).and_then(VecDeque::pop_front);
        // Of a request that was not captured nobody knows the route.
        let route = asked.unwrap_or_else(|| self.route(OTHERS.to_owned()));
        if let Some(fresh) = self.fresh.get_mut(route) {
            *fresh += 1;
        }
        if let Some(slice) = self.slice(moment) {
            slice.responses[route] += 1;
        }
    }

    pub(super) fn trip(&mut self, start: Moment) {
        if let Some(slice) = self.slice(start) {
            slice.trips += 1;
        }
    }

    pub(super) fn closed(&mut self, connection: Connection) {
        self.pending.remove(&connection);
    }

    /// The routes that were asked for in the slices that are kept, the most frequent first, with
    /// the responses since the last time.
    pub(super) fn take(&mut self) -> Vec<RouteCost> {
        let costs = self.costs();
        self.fresh.fill(0);
        costs
    }

    /// The same, and the count goes on.
    pub(super) fn costs(&self) -> Vec<RouteCost> {
        let total = |route: usize| -> u64 {
            self.slices.iter().map(|slice| u64::from(slice.responses[route])).sum()
        };
        let seen: Vec<usize> = (0..self.names.len()).filter(|&route| total(route) > 0).collect();
        let trips = self.trips(&seen);
        let cost = |(&route, trips): (&usize, RouteTrips)| RouteCost {
            route: self.names[route].clone(),
            responses: self.fresh[route],
            trips,
        };
        let mut costs: Vec<RouteCost> = seen.iter().zip(trips).map(cost).collect();
        costs.sort_by(|a, b| b.responses.cmp(&a.responses).then_with(|| a.route.cmp(&b.route)));
        costs
    }

    fn trips(&self, seen: &[usize]) -> Vec<RouteTrips> {
        if let [only] = seen {
            let responses: u64 =
                self.slices.iter().map(|slice| u64::from(slice.responses[*only])).sum();
            let trips: u64 = self.slices.iter().map(|slice| u64::from(slice.trips)).sum();
            return vec![RouteTrips::Counted(trips as f64 / responses as f64)];
        }
        let row = |slice: &Slice| {
            let x = seen.iter().map(|&route| f64::from(slice.responses[route])).collect();
            (x, f64::from(slice.trips))
        };
        let busy = |slice: &&Slice| slice.trips > 0 || slice.responses.iter().any(|&n| n > 0);
        let rows: Vec<(Vec<f64>, f64)> = self.slices.iter().filter(busy).map(row).collect();
        let nothing = |reason| vec![RouteTrips::NotMeasured(reason); seen.len()];
        if rows.len() < SLICES_EACH * seen.len() {
            return nothing("too few slices yet to tell routes apart");
        }
        match through_origin(&rows) {
            None => nothing("these routes always come in the same mixture"),
            Some(found) => found.into_iter().map(judged).collect(),
        }
    }

    /// The number of a name; of one too many, that of the others.
    fn route(&mut self, name: String) -> usize {
        if let Some(known) = self.names.iter().position(|known| *known == name) {
            return known;
        }
        let name = if self.names.len() < ROUTES { name } else { OTHERS.to_owned() };
        if let Some(known) = self.names.iter().position(|known| *known == name) {
            return known;
        }
        self.names.push(name);
        self.fresh.push(0);
        self.names.len() - 1
    }

    /// The slice of a moment; none where it is over for long.
    fn slice(&mut self, moment: Moment) -> Option<&mut Slice> {
        let number = moment.0 / SLICE_NS;
        if self.slices.back().is_none_or(|last| last.number < number) {
            self.slices.push_back(Slice { number, ..Slice::default() });
            if self.slices.len() > SLICES {
                self.slices.pop_front();
            }
        }
        self.slices.iter_mut().rev().find(|slice| slice.number == number)
    }
}

/// An estimate that its error leaves nothing of is none.
fn judged(found: Coefficient) -> RouteTrips {
    let known = found.standard_error <= (found.value / 4.0).max(0.25);
    if known {
        RouteTrips::Estimated(found)
    } else {
        RouteTrips::NotMeasured("too much scatter to tell routes apart")
    }
}

/// `GET /post/*`: what differs from request to request is not part of a route.
fn name(method: &[u8], target: &[u8]) -> String {
    let target = String::from_utf8_lossy(target);
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<&str> =
        path.split('/').map(|part| if differs(part) { "*" } else { part }).collect();
    let method = String::from_utf8_lossy(method);
    format!("{method} {}", segments.join("/")).chars().take(NAME).collect()
}

/// Whether a segment looks like the name of one thing among many: it has a digit, and is no
/// version such as `v1`.
fn differs(segment: &str) -> bool {
    let number = segment.strip_prefix('v').unwrap_or(segment);
    let version = number.len() < segment.len() && number.bytes().all(|byte| byte.is_ascii_digit());
    segment.bytes().any(|byte| byte.is_ascii_digit()) && !version
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Connection = Connection(1);

    /// `count` requests of a path in a slice, with `trips` trips each.
    fn ask(routes: &mut Routes, slice: u64, path: &str, count: u64, trips: u64) {
        let moment = Moment(slice * SLICE_NS + 1);
        for _ in 0..count {
            routes.request(A, b"GET", path.as_bytes());
            routes.response(A, moment);
            (0..trips).for_each(|_| routes.trip(moment));
        }
    }

    #[test]
    fn what_differs_from_request_to_request_is_no_part_of_a_route() {
        assert_eq!(name(b"GET", b"/post/post-10?x=1"), "GET /post/*");
        assert_eq!(name(b"PUT", b"/api/v1/users/7/posts"), "PUT /api/v1/users/*/posts");
        assert_eq!(name(b"GET", b"/"), "GET /");
    }

    #[test]
    fn one_route_alone_is_a_quotient() {
        let mut routes = Routes::default();
        ask(&mut routes, 0, "/a/1", 4, 6);
        let expected =
            RouteCost { route: "GET /a/*".into(), responses: 4, trips: RouteTrips::Counted(6.0) };
        assert_eq!(routes.take(), [expected]);
        assert_eq!(routes.take()[0].responses, 0, "nothing new");
    }

    #[test]
    fn a_mixture_is_taken_apart_by_slices_of_different_mixtures() {
        let mut routes = Routes::default();
        for slice in 0..50 {
            ask(&mut routes, slice, "/a", slice % 4 + 1, 6);
            ask(&mut routes, slice, "/b", slice % 7, 1);
        }
        let costs = routes.take();
        for (route, trips) in [("GET /a", 6.0), ("GET /b", 1.0)] {
            let cost = costs.iter().find(|cost| cost.route == route).unwrap();
            let RouteTrips::Estimated(found) = cost.trips else { panic!("{cost:?}") };
            assert!((found.value - trips).abs() < 1e-6, "{cost:?}");
        }
    }

    #[test]
    fn routes_that_always_come_together_are_not_told_apart() {
        let mut routes = Routes::default();
        for slice in 0..50 {
            ask(&mut routes, slice, "/a", 2, 6);
            ask(&mut routes, slice, "/b", 2, 1);
        }
        let costs = routes.take();
        assert!(costs.iter().all(|cost| matches!(cost.trips, RouteTrips::NotMeasured(_))));
    }

    #[test]
    fn state_is_bounded() {
        let mut routes = Routes::default();
        for slice in 0..2_000 {
            let path = format!("/{}", "x".repeat(slice as usize % 50 + 1));
            ask(&mut routes, slice, &path, 1, 1);
        }
        assert!(routes.slices.len() <= SLICES && routes.names.len() <= ROUTES + 1);
        assert!(routes.pending[&A].is_empty());
    }
}
