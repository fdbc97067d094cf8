//! The driver's thread: takes orders one after another and keeps connections between them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use assay_captures::lap::{Generator, Load};
use assay_captures::request_log::Slot;
use assay_captures::units::Nanos;
use bytes::Bytes;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};

use super::cancel::Cancel;
use super::connection::Connection;
use super::errors::LoadError;
use super::lap::{Clock, Ending, LapFigures, LapOrder, Shared};
use super::requests::Requests;
use super::timer::Timer;
use super::{closed, fixed_rate, serial};

/// How long the service must have been still before a lap begins and before it ends.
const QUIET: Duration = Duration::from_millis(5);
/// How long requests in flight may still be answered once the wish to stop is raised.
const CANCEL_DRAIN: Duration = Duration::from_millis(300);

/// A handle on the driver's thread; its methods wait until the thread has done what they ask, and
/// must not be called from inside an asynchronous task. Dropping it ends the thread and closes
/// its connections.
#[derive(Debug)]
pub struct Driver {
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// A body and its status, from a single request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Status of the answer.
    pub status: u16,
    /// The whole body.
    pub body: Bytes,
}

enum Order {
    Connect(SocketAddr, u32, Reply<()>),
    Fetch(SocketAddr, Arc<Requests>, u64, Duration, Reply<Fetched>),
    Lap(LapOrder, Reply<LapFigures>),
    Close(SocketAddr, Reply<()>),
}

type Reply<T> = oneshot::Sender<Result<T, LoadError>>;
type Pools = HashMap<SocketAddr, Vec<Connection>>;

impl Driver {
    /// Starts the thread on `cpus`; on any CPU where the list is empty.
    pub fn start(cpus: &[usize], cancel: Cancel) -> Result<Self, LoadError> {
        Self::start_inside(None, cpus, cancel)
    }

    /// Starts the thread in the network namespace of a process, where one is given: its
    /// connections are made there.
    pub fn start_inside(
        network: Option<assay_captures::ids::Pid>,
        cpus: &[usize],
        cancel: Cancel,
    ) -> Result<Self, LoadError> {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            set.set(cpu).map_err(|error| machine("use that CPU", error.into()))?;
        }
        let set = (!cpus.is_empty()).then_some(set);
        let (orders, inbox) = mpsc::unbounded_channel();
        let (started, outcome) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("load".to_owned())
            .spawn(move || match enter(network).and_then(|()| prepare_thread(set)) {
                Ok(runtime) => {
                    let _ = started.send(Ok(()));
                    LocalSet::new().block_on(&runtime, serve(inbox, cancel));
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            })
            .map_err(|error| machine("start its thread", error))?;
        outcome.recv().map_err(|_| LoadError::Gone)??;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// Opens `count` connections to `address` and keeps them for later laps.
    pub fn connect(&self, address: SocketAddr, count: u32) -> Result<(), LoadError> {
        self.order(|reply| Order::Connect(address, count, reply))
    }

    /// Sends the request at `index` once, on a connection of its own kept for such requests.
    pub fn fetch(
        &self,
        address: SocketAddr,
        requests: Arc<Requests>,
        index: u64,
        timeout: Duration,
    ) -> Result<Fetched, LoadError> {
        self.order(|reply| Order::Fetch(address, requests, index, timeout, reply))
    }

    /// Drives one lap.
    pub fn lap(&self, order: LapOrder) -> Result<LapFigures, LoadError> {
        self.order(|reply| Order::Lap(order, reply))
    }

    /// Closes all connections to `address`.
    pub fn close(&self, address: SocketAddr) -> Result<(), LoadError> {
        self.order(|reply| Order::Close(address, reply))
    }

    fn order<T>(&self, order: impl FnOnce(Reply<T>) -> Order) -> Result<T, LoadError> {
        let (reply, answer) = oneshot::channel();
        let orders = self.orders.as_ref().ok_or(LoadError::Gone)?;
        orders.send(order(reply)).map_err(|_| LoadError::Gone)?;
        answer.blocking_recv().map_err(|_| LoadError::Gone)?
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn machine(what: &'static str, source: io::Error) -> LoadError {
    LoadError::Machine { what, source }
}

/// Moves this thread, and no other, into the network namespace of a process.
fn enter(network: Option<assay_captures::ids::Pid>) -> Result<(), LoadError> {
    let Some(pid) = network else { return Ok(()) };
    let refused = |error| machine("enter the network namespace of the service (root may)", error);
    let there = fs::File::open(format!("/proc/{}/ns/net", pid.0)).map_err(refused)?;
    setns(there, CloneFlags::CLONE_NEWNET).map_err(|error| refused(error.into()))
}

fn prepare_thread(cpus: Option<CpuSet>) -> Result<tokio::runtime::Runtime, LoadError> {
    if let Some(cpus) = cpus {
        sched_setaffinity(Pid::from_raw(0), &cpus)
            .map_err(|error| machine("run on the `load` CPUs", error.into()))?;
    }
    // Thousands of connections need thousands of descriptors; the soft limit is often 1,024.
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| machine("start its runtime", error))
}

async fn serve(mut inbox: mpsc::UnboundedReceiver<Order>, cancel: Cancel) {
    let mut pools = Pools::new();
    // Requests outside laps get their own connection, so that laps keep all of theirs.
    let mut singles: HashMap<SocketAddr, Connection> = HashMap::new();
    while let Some(order) = inbox.recv().await {
        // A reply that nobody waits for any more is no error.
        match order {
            Order::Connect(address, count, reply) => {
                let pool = pools.entry(address).or_default();
                let _ = reply.send(fill(pool, address, count).await);
            }
            Order::Fetch(address, requests, index, timeout, reply) => {
                let single = singles.entry(address).or_insert_with(|| Connection::new(address));
                let _ = reply.send(fetch(single, address, &requests, index, timeout).await);
            }
            Order::Lap(order, reply) => {
                let pool = pools.entry(order.address).or_default();
                let _ = reply.send(lap(pool, &order, cancel.clone()).await);
            }
            Order::Close(address, reply) => {
                pools.remove(&address);
                singles.remove(&address);
                let _ = reply.send(Ok(()));
            }
        }
    }
}

/// Opens what is missing and opens again what the other side has closed meanwhile.
async fn fill(
    pool: &mut Vec<Connection>,
    address: SocketAddr,
    count: u32,
) -> Result<(), LoadError> {
    while pool.len() < count as usize {
        pool.push(Connection::new(address));
    }
    for connection in pool.iter_mut().take(count as usize) {
        connection.refresh().await.map_err(|source| LoadError::Connect { address, source })?;
    }
    Ok(())
}

async fn fetch(
    connection: &mut Connection,
    address: SocketAddr,
    requests: &Requests,
    index: u64,
    timeout: Duration,
) -> Result<Fetched, LoadError> {
    let prepared = requests.at(index).ok_or(LoadError::Order("there is nothing to fetch"))?;
    connection.refresh().await.map_err(|source| LoadError::Connect { address, source })?;
    let mut body = Vec::new();
    let outcome =
        connection.exchange(prepared, timeout, |chunk| body.extend_from_slice(chunk)).await;
    match outcome {
        Ok(answer) => Ok(Fetched { status: answer.status, body: body.into() }),
        Err(kind) => {
            let (method, path) = requests.line(index as usize);
            Err(LoadError::NoAnswer { address, method, path, kind })
        }
    }
}

async fn lap(
    pool: &mut Vec<Connection>,
    order: &LapOrder,
    cancel: Cancel,
) -> Result<LapFigures, LoadError> {
    let count = match order.load {
        Load::Closed { connections } | Load::FixedRate { connections, .. } => connections,
        Load::Serial { .. } => 1,
        Load::Foreign => 0,
    };
    if count == 0 || order.requests.is_empty() {
        return Err(LoadError::Order("a lap needs at least one connection and one request"));
    }
    if matches!(order.load, Load::FixedRate { rate, .. } if !(rate.is_finite() && rate > 0.0)) {
        return Err(LoadError::Order("a fixed rate must be a number above zero"));
    }
    fill(pool, order.address, count).await?;
    let rest = pool.split_off(count as usize);
    let timer = Timer::new().map_err(|error| machine("use a kernel timer", error))?;
    let mut service = order.service.clone();
    let no_timer = |error| machine("use a kernel timer", error);
    service.wait(&timer, QUIET).await.map_err(no_timer)?;

    let own = OwnClocks::read();
    let start = Clock::now();
    let shared = Shared::new(order, pool.len(), start, cancel.clone());
    let mut field = Field { tasks: JoinSet::new(), back: Vec::new(), slots: Vec::new() };
    field.start(std::mem::take(pool), order, &shared, start);
    let finished = field.finish(&cancel).await;
    *pool = field.back;
    pool.extend(rest);
    finished.map_err(|error| machine("use a kernel timer", error))?;

    if let Load::FixedRate { rate, .. } = order.load
        && !shared.must_end()
    {
        let schedule = fixed_rate::Schedule::new(start.instant(), rate, order.stop, order.timeout);
        shared.unsent(schedule.total().saturating_sub(shared.issued()));
    }
    service.wait(&timer, QUIET).await.map_err(no_timer)?;
    let own = own.and_then(|before| OwnClocks::read().map(|after| after.since(&before)));
    let mut figures = shared.figures(start, own);
    figures.slots = field.slots;
    if let (Some(last), Ending::Whole) = (figures.slots.last_mut(), &figures.ending) {
        last.end = figures.span.end;
    }
    Ok(figures)
}

/// What a lap's task brings back.
type Finished = io::Result<(Option<Connection>, Vec<Slot>)>;

/// The tasks of one lap, and what they bring back.
struct Field {
    tasks: JoinSet<Finished>,
    back: Vec<Connection>,
    slots: Vec<Slot>,
}

impl Field {
    fn start(
        &mut self,
        connections: Vec<Connection>,
        order: &LapOrder,
        shared: &Rc<Shared>,
        start: Clock,
    ) {
        let (begun, stop) = (start.instant(), order.stop);
        let schedule = match order.load {
            Load::FixedRate { rate, .. } => {
                let schedule = fixed_rate::Schedule::new(begun, rate, stop, order.timeout);
                let pacer =
                    fixed_rate::pace(Rc::clone(&schedule), Rc::clone(shared), connections.len());
                self.tasks.spawn_local(async { pacer.await.map(|()| (None, Vec::new())) });
                Some(schedule)
            }
            _ => None,
        };
        for connection in connections {
            let shared = Rc::clone(shared);
            if let Load::Serial { gap } = order.load {
                let stillness = order.service.clone();
                self.tasks.spawn_local(async move {
                    let driven =
                        serial::drive(connection, shared, begun, stop, gap, stillness).await;
                    driven.map(|(connection, slots)| (Some(connection), slots))
                });
            } else if let Some(schedule) = schedule.clone() {
                self.tasks.spawn_local(async move {
                    let driven = fixed_rate::drive(connection, shared, schedule).await;
                    Ok((Some(driven), Vec::new()))
                });
            } else {
                self.tasks.spawn_local(async move {
                    let driven = closed::drive(connection, shared, begun, stop).await;
                    Ok((Some(driven), Vec::new()))
                });
            }
        }
    }

    /// Waits until every task has ended. After the wish to stop, what is not answered soon is cut.
    async fn finish(&mut self, cancel: &Cancel) -> io::Result<()> {
        let mut cut = std::pin::pin!(async {
            cancel.cancelled().await;
            tokio::time::sleep(CANCEL_DRAIN).await;
        });
        let mut outcome = Ok(());
        loop {
            let joined = tokio::select! {
                joined = self.tasks.join_next() => joined,
                () = &mut cut => {
                    self.tasks.abort_all();
                    return outcome;
                }
            };
            match joined {
                None => return outcome,
                Some(Ok(Ok((connection, slots)))) => {
                    self.back.extend(connection);
                    self.slots.extend(slots);
                }
                Some(Ok(Err(error))) => outcome = Err(error),
                Some(Err(error)) => outcome = Err(io::Error::other(error)),
            }
        }
    }
}

/// The kernel's clocks of this thread.
struct OwnClocks {
    cpu: Nanos,
    run_queue_wait: Option<Nanos>,
}

impl OwnClocks {
    fn read() -> Option<Self> {
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
        let cpu = Duration::from(cpu);
        Some(Self {
            cpu: Nanos(u64::try_from(cpu.as_nanos()).ok()?),
            run_queue_wait: run_queue_wait(),
        })
    }

    fn since(&self, before: &Self) -> Generator {
        let wait = self.run_queue_wait.zip(before.run_queue_wait);
        Generator {
            cpu: Nanos(self.cpu.0.saturating_sub(before.cpu.0)),
            run_queue_wait: wait.map(|(now, then)| Nanos(now.0.saturating_sub(then.0))),
        }
    }
}

/// The second field of schedstat: nanoseconds runnable but not running.
fn run_queue_wait() -> Option<Nanos> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Nanos)
}
