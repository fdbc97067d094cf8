//! Serial load: one request at a time, each in a slot of its own.
//!
//! A pool may still talk to its database after the answer, so a slot lasts until the service has
//! been still for the gap. Every fourth slot is empty and as long as the one before it: what a
//! capture holds there was caused by nobody.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use assay_captures::request_log::{Slot, SlotKind};
use assay_captures::units::Nanos;

use super::connection::Connection;
use super::lap::{Shared, Stop, now};
use super::stillness::Stillness;
use super::timer::Timer;

/// Three requests, then an empty slot.
const REQUESTS_PER_EMPTY: u64 = 3;

/// Drives a serial lap that began at `start` over one connection.
pub(super) async fn drive(
    mut connection: Connection,
    shared: Rc<Shared>,
    start: Instant,
    stop: Stop,
    gap: Nanos,
    mut stillness: Stillness,
) -> io::Result<(Connection, Vec<Slot>)> {
    let (limit, deadline) = match stop {
        Stop::Requests(limit) => (limit, None),
        Stop::After(length) => (u64::MAX, start.checked_add(length)),
    };
    let timer = Timer::new()?;
    let gap = std::time::Duration::from_nanos(gap.0);
    let mut slots = Vec::new();
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let Some(number) = shared.issue(limit) else { break };
        let (slot, began) = (now(), Instant::now());
        let status = shared.exchange(&mut connection, number, None).await;
        let answered = status.map(|_| now());
        stillness.wait(&timer, gap).await?;
        let length = began.elapsed();
        slots.push(Slot { start: slot, answered, end: now(), kind: SlotKind::Request, status });
        if (number + 1) % REQUESTS_PER_EMPTY == 0 {
            let slot = now();
            timer.until(Instant::now() + length).await?;
            slots.push(Slot {
                start: slot,
                answered: None,
                end: now(),
                kind: SlotKind::Empty,
                status: None,
            });
        }
    }
    // A slot ends where the next one starts, to the nanosecond.
    for index in 1..slots.len() {
        slots[index - 1].end = slots[index].start;
    }
    Ok((connection, slots))
}
