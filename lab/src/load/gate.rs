//! The gate before any load: every request of every route, to every arm, must be answered with a
//! 2xx status and exactly the reference arm's body. Comparing the speed of different answers
//! would mean nothing.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::driver::{Driver, Fetched};
use super::errors::LoadError;
use super::requests::Requests;

/// Columns of a differing line that are shown.
const COLUMNS: usize = 100;
/// Columns kept before the first difference, where that lies beyond the end of what is shown.
const LEAD: usize = 30;

/// One route, as the gate sees it.
#[derive(Clone, Debug)]
pub struct GatedRoute {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub requests: Arc<Requests>,
    /// Whether answers may differ, so that only their status is looked at.
    pub answers_vary: bool,
}

/// Holds the reference arm's bodies, and admits other arms that answer the same.
#[derive(Debug)]
pub struct Gate {
    routes: Vec<GatedRoute>,
    timeout: Duration,
    reference: Option<Reference>,
}

#[derive(Debug)]
struct Reference {
    arm: String,
    /// By route, then by request.
    bodies: Vec<Vec<Bytes>>,
}

/// Why an arm is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// It could not be asked.
    #[error("{arm}, route {route}: {source}")]
    NotAsked {
        /// Title of the arm.
        arm: String,
        /// Name of the route.
        route: String,
        /// What happened.
        #[source]
        source: Box<LoadError>,
    },
    /// It answered with an error.
    #[error("{arm}, route {route}: {method} {path} is answered with status {status}: {line}")]
    Status {
        /// Title of the arm.
        arm: String,
        /// Name of the route.
        route: String,
        /// HTTP method.
        method: String,
        /// Path and query.
        path: String,
        /// Status of the answer.
        status: u16,
        /// First line of its body, safe to print.
        line: String,
    },
    /// Its body is not the reference's.
    #[error("{0}")]
    Differs(Box<Difference>),
}

/// Where two bodies differ first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The arm whose bodies are the measure.
    pub reference: String,
    /// The arm that answers otherwise; the same name where one arm answers twice differently.
    pub arm: String,
    /// Name of the route.
    pub route: String,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// 1-based.
    pub line: usize,
    /// The reference's line, cut and safe to print.
    pub wanted: String,
    /// The arm's line, cut and safe to print.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reference, arm, route, method, path, line, wanted, got } = self;
        if reference == arm {
            write!(f, "{arm}, route {route}: {method} {path} is answered differently each time")?;
        } else {
            write!(f, "{arm}, route {route}: {method} {path} is answered unlike by {reference}")?;
        }
        write!(f, ", from line {line} on\n  {reference}: {wanted}\n  {arm}: {got}")
    }
}

impl Gate {
    /// A gate for these routes; an answer may take as long as `timeout`.
    #[must_use]
    pub fn new(routes: Vec<GatedRoute>, timeout: Duration) -> Self {
        Self { routes, timeout, reference: None }
    }

    /// Fetches everything from an arm and compares it with the first arm's; the first arm itself
    /// is asked twice, so that a page that is never the same is found before it is blamed on
    /// another arm.
    pub fn admit(
        &mut self,
        driver: &Driver,
        arm: &str,
        address: SocketAddr,
    ) -> Result<(), GateError> {
        if self.reference.is_none() {
            let bodies = self.fetch_all(driver, arm, address)?;
            self.reference = Some(Reference { arm: arm.to_owned(), bodies });
        }
        let Some(reference) = &self.reference else { return Ok(()) };
        for (route, wanted) in self.routes.iter().zip(&reference.bodies) {
            for (index, wanted) in wanted.iter().enumerate() {
                let (method, path) = route.requests.line(index);
                if arm == reference.arm && (route.answers_vary || !repeats(&method)) {
                    continue;
                }
                let got = self.fetch(driver, arm, address, route, index)?;
                if got != *wanted && !route.answers_vary {
                    let (line, wanted, got) = first_difference(wanted, &got);
                    return Err(GateError::Differs(Box::new(Difference {
                        reference: reference.arm.clone(),
                        arm: arm.to_owned(),
                        route: route.name.clone(),
                        method,
                        path,
                        line,
                        wanted,
                        got,
                    })));
                }
            }
        }
        Ok(())
    }

    /// Fetches everything from an arm once: each answer must have a 2xx status.
    pub fn ask(&self, driver: &Driver, arm: &str, address: SocketAddr) -> Result<(), GateError> {
        self.fetch_all(driver, arm, address).map(drop)
    }

    /// The requests of a route, with the bodies that the reference arm gave; `None` before it was
    /// admitted or for an unknown route.
    #[must_use]
    pub fn expecting(&self, route: &str) -> Option<Requests> {
        let index = self.routes.iter().position(|gated| gated.name == route)?;
        let bodies = self.reference.as_ref()?.bodies.get(index)?;
        if self.routes[index].answers_vary {
            return Some(Requests::clone(&self.routes[index].requests));
        }
        Some(Requests::clone(&self.routes[index].requests).expecting(bodies))
    }

    fn fetch_all(
        &self,
        driver: &Driver,
        arm: &str,
        address: SocketAddr,
    ) -> Result<Vec<Vec<Bytes>>, GateError> {
        let mut all = Vec::with_capacity(self.routes.len());
        for route in &self.routes {
            let mut bodies = Vec::with_capacity(route.requests.len());
            for index in 0..route.requests.len() {
                bodies.push(self.fetch(driver, arm, address, route, index)?);
            }
            all.push(bodies);
        }
        Ok(all)
    }

    fn fetch(
        &self,
        driver: &Driver,
        arm: &str,
        address: SocketAddr,
        route: &GatedRoute,
        index: usize,
    ) -> Result<Bytes, GateError> {
        let requests = Arc::clone(&route.requests);
        let fetched = driver.fetch(address, requests, index as u64, self.timeout);
        let Fetched { status, body } = fetched.map_err(|source| GateError::NotAsked {
            arm: arm.to_owned(),
            route: route.name.clone(),
            source: Box::new(source),
        })?;
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let (method, path) = route.requests.line(index);
        let text = String::from_utf8_lossy(&body);
        let line = printable(text.lines().next().unwrap_or_default(), 0);
        let (arm, route) = (arm.to_owned(), route.name.clone());
        Err(GateError::Status { arm, route, method, path, status, line })
    }
}

/// Whether asking twice must give the same answer.
fn repeats(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

/// The number of the first line that differs, and both versions of it.
fn first_difference(wanted: &[u8], got: &[u8]) -> (usize, String, String) {
    let same = wanted.iter().zip(got).take_while(|(wanted, got)| wanted == got).count();
    let line = wanted[..same].iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = wanted[..same].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let show = |body: &[u8]| {
        let rest = &body[start.min(body.len())..];
        if rest.is_empty() {
            return "(the body ends here)".to_owned();
        }
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let before = String::from_utf8_lossy(&rest[..(same - start).min(end)]).chars().count();
        printable(&String::from_utf8_lossy(&rest[..end]), before)
    };
    (line, show(wanted), show(got))
}

/// One line, cut to what a terminal shows around column `focus`, control characters escaped.
fn printable(line: &str, focus: usize) -> String {
    let skipped = if focus + LEAD < COLUMNS { 0 } else { focus - LEAD };
    let mut text = String::new();
    if skipped > 0 {
        text.push('…');
    }
    let mut shown = text.chars().count();
    for character in line.chars().skip(skipped) {
        let escaped: String = if character.is_control() {
            character.escape_default().collect()
        } else {
            character.into()
        };
        let width = escaped.chars().count();
        if shown + width >= COLUMNS {
            text.push('…');
            break;
        }
        shown += width;
        text.push_str(&escaped);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_shown_from_both() {
        let found = first_difference(b"one\ntwo\nthree\n", b"one\nzwei\nthree\n");
        assert_eq!(found, (2, "two".to_owned(), "zwei".to_owned()));
        let found = first_difference(b"one\ntwo", b"one\n");
        assert_eq!(found, (2, "two".to_owned(), "(the body ends here)".to_owned()));
        let found = first_difference(b"one", b"one\ntwo");
        assert_eq!(found, (1, "one".to_owned(), "one".to_owned()));
    }

    #[test]
    fn a_difference_far_to_the_right_is_still_in_sight() {
        let (wanted, got) = (format!("{}X", "a".repeat(500)), format!("{}Y", "a".repeat(500)));
        let (line, wanted, got) = first_difference(wanted.as_bytes(), got.as_bytes());
        assert_eq!(line, 1);
        assert_eq!(wanted, format!("…{}X", "a".repeat(LEAD)));
        assert_eq!(got, format!("…{}Y", "a".repeat(LEAD)));
    }

    #[test]
    fn what_a_body_holds_cannot_drive_the_terminal() {
        assert_eq!(printable("\u{1b}[2Jx\u{7}", 0), "\\u{1b}[2Jx\\u{7}");
        assert_eq!(printable(&"x".repeat(300), 0).chars().count(), COLUMNS);
    }
}
