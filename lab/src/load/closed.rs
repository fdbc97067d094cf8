//! Closed load: each connection sends its next request when it has its answer.

use std::rc::Rc;
use std::time::Instant;

use super::connection::Connection;
use super::lap::{Shared, Stop};

/// One connection's part of a closed lap that began at `start`.
pub(super) async fn drive(
    mut connection: Connection,
    shared: Rc<Shared>,
    start: Instant,
    stop: Stop,
) -> Connection {
    let (limit, deadline) = match stop {
        Stop::Requests(limit) => (limit, None),
        Stop::After(length) => (u64::MAX, start.checked_add(length)),
    };
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let Some(number) = shared.issue(limit) else { break };
        shared.exchange(&mut connection, number, None).await;
    }
    connection
}
