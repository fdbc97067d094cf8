//! The driver against a server in this process: every request is accounted for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_captures::lap::Load;
use assay_captures::request_log::SlotKind;
use assay_captures::units::Nanos;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::gate::{Gate, GateError, GatedRoute};
use super::*;

/// How the server under test behaves, by path.
#[derive(Default)]
struct Server {
    seen: AtomicU64,
    accepted: AtomicU64,
}

impl Server {
    /// Starts on a port of its own, on a thread of its own.
    fn start() -> (Arc<Self>, SocketAddr) {
        let server = Arc::new(Self::default());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&server);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    shared.accepted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(Arc::clone(&shared).serve(stream));
                }
            });
        });
        (server, address)
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request| self.answer(request));
        let io = TokioIo::new(stream);
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, std::io::Error> {
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        let respond = |status: u16, body: &str| {
            let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
            Ok(Response::builder().status(status).body(body).unwrap())
        };
        match request.uri().path() {
            "/number" => respond(200, &number.to_string()),
            "/every-third-fails" if number % 3 == 2 => respond(503, "busy"),
            "/every-third-breaks" if number % 3 == 2 => Err(std::io::Error::other("break")),
            "/slow" => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                respond(200, "slow")
            }
            "/never" => std::future::pending().await,
            "/close" => {
                let body = Full::new(Bytes::from_static(b"bye"));
                Ok(Response::builder().header("connection", "close").body(body).unwrap())
            }
            "/echo" => {
                let body = request.into_body().collect().await.map_err(std::io::Error::other)?;
                Ok(Response::new(Full::new(body.to_bytes())))
            }
            _ => respond(200, "hello\n"),
        }
    }
}

fn requests(paths: &[&str]) -> Requests {
    let mut requests = Requests::default();
    for path in paths {
        requests.add("GET", path, [], None).unwrap();
    }
    requests
}

fn order(address: SocketAddr, requests: Requests, load: Load, stop: Stop) -> LapOrder {
    let timeout = Duration::from_secs(10);
    let service = Stillness::default();
    LapOrder { address, requests: Arc::new(requests), load, stop, timeout, service }
}

fn drive(order: LapOrder) -> LapFigures {
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    driver.lap(order).unwrap()
}

/// Every request was answered or is among the errors, and answers are good or not.
fn assert_balanced(lap: &LapFigures) {
    let errors: u64 = lap.errors.values().sum();
    assert_eq!(lap.latency.count() + errors, lap.requests);
    assert_eq!(lap.good + lap.non_2xx + lap.mismatched + errors, lap.requests);
    assert!(lap.answered_in_time <= lap.latency.count());
    assert!(lap.span.start <= lap.sent_until && lap.sent_until <= lap.span.end);
}

const CLOSED: Load = Load::Closed { connections: 4 };

#[test]
fn a_closed_lap_sends_exactly_as_many_as_were_ordered() {
    let (server, address) = Server::start();
    let expecting = requests(&["/"]).expecting(&[Bytes::from_static(b"hello\n")]);
    let lap = drive(order(address, expecting, CLOSED, Stop::Requests(1_001)));
    assert_balanced(&lap);
    assert_eq!((lap.requests, lap.good, lap.body_bytes), (1_001, 1_001, 6_006));
    assert_eq!(server.seen.load(Ordering::Relaxed), 1_001);
    assert_eq!(server.accepted.load(Ordering::Relaxed), 4);
    assert_eq!(lap.ending, Ending::Whole);
    assert!(lap.generator.is_some_and(|own| own.cpu > Nanos(0)));
}

#[test]
fn a_closed_lap_by_time_counts_what_the_server_saw() {
    let (server, address) = Server::start();
    let stop = Stop::After(Duration::from_millis(100));
    let lap = drive(order(address, requests(&["/"]), CLOSED, stop));
    assert_balanced(&lap);
    assert_eq!(lap.requests, server.seen.load(Ordering::Relaxed));
    assert!(lap.span.length() >= Nanos(100_000_000));
}

#[test]
fn other_bodies_are_mismatched_and_other_statuses_are_not_good() {
    let (_, address) = Server::start();
    let wrong = requests(&["/"]).expecting(&[Bytes::from_static(b"hellO\n")]);
    let lap = drive(order(address, wrong, CLOSED, Stop::Requests(10)));
    assert_eq!((lap.good, lap.mismatched, lap.non_2xx), (0, 10, 0));

    let (_, address) = Server::start();
    let third = requests(&["/every-third-fails"]);
    let lap = drive(order(address, third, CLOSED, Stop::Requests(30)));
    assert_balanced(&lap);
    assert_eq!((lap.good, lap.mismatched, lap.non_2xx), (20, 0, 10));
}

#[test]
fn a_broken_connection_is_an_error_and_is_opened_again() {
    let (server, address) = Server::start();
    let third = requests(&["/every-third-breaks"]);
    let one = Load::Closed { connections: 1 };
    let lap = drive(order(address, third, one, Stop::Requests(30)));
    assert_balanced(&lap);
    assert_eq!((lap.good, lap.errors.values().sum::<u64>()), (20, 10));
    // The tenth break ends the lap: nothing is left to be sent.
    assert_eq!(server.accepted.load(Ordering::Relaxed), 10);
}

#[test]
fn a_server_that_closes_after_each_answer_causes_no_errors() {
    let (_, address) = Server::start();
    let lap = drive(order(address, requests(&["/close"]), CLOSED, Stop::Requests(20)));
    assert_balanced(&lap);
    assert_eq!((lap.good, lap.errors.len()), (20, 0));
}

#[test]
fn an_answer_that_never_comes_is_a_timeout() {
    let (_, address) = Server::start();
    let mut order = order(address, requests(&["/never"]), CLOSED, Stop::Requests(4));
    order.timeout = Duration::from_millis(30);
    let lap = drive(order);
    assert_balanced(&lap);
    assert_eq!(lap.errors.get("timeout"), Some(&4));
}

#[test]
fn a_fixed_rate_counts_the_wait_for_a_free_connection_as_latency() {
    // One connection, 20 ms an answer, a request due every 2 ms:
    //
    // due       0   2   4   6   8  10  12  14  16  18
    // answered  20  40  60  80 …                          200     the last waited about 180 ms
    let (_, address) = Server::start();
    let load = Load::FixedRate { connections: 1, rate: 500.0 };
    let lap = drive(order(address, requests(&["/slow"]), load, Stop::Requests(10)));
    assert_balanced(&lap);
    assert_eq!((lap.requests, lap.good), (10, 10));
    assert!(lap.latency.max >= Nanos(180_000_000), "{:?}", lap.latency.max);
    assert!(lap.latency.min >= Nanos(20_000_000));
}

#[test]
fn a_fixed_rate_by_time_sends_rate_times_time() {
    let (server, address) = Server::start();
    let load = Load::FixedRate { connections: 8, rate: 1_000.0 };
    let stop = Stop::After(Duration::from_millis(200));
    let lap = drive(order(address, requests(&["/"]), load, stop));
    assert_balanced(&lap);
    assert_eq!(lap.requests, 200);
    assert_eq!(server.seen.load(Ordering::Relaxed), 200);
}

#[test]
fn what_a_schedule_asked_for_and_could_not_be_sent_is_an_error() {
    let (server, address) = Server::start();
    let load = Load::FixedRate { connections: 1, rate: 1_000.0 };
    let mut order = order(address, requests(&["/slow"]), load, Stop::Requests(100));
    order.timeout = Duration::from_millis(60);
    let lap = drive(order);
    assert_balanced(&lap);
    let unsent = lap.errors.get("unsent").copied().unwrap_or_default();
    assert_eq!(lap.requests, 100);
    assert_eq!(server.seen.load(Ordering::Relaxed), 100 - unsent);
    assert!(unsent > 0);
}

#[test]
fn serial_slots_touch_and_every_fourth_is_empty() {
    let (server, address) = Server::start();
    let gap = Nanos(3_000_000);
    let load = Load::Serial { gap };
    let lap = drive(order(address, requests(&["/", "/slow"]), load, Stop::Requests(9)));
    assert_balanced(&lap);
    assert_eq!((lap.requests, server.seen.load(Ordering::Relaxed)), (9, 9));
    assert_eq!(lap.slots.len(), 12);
    for (index, slot) in lap.slots.iter().enumerate() {
        let empty = index % 4 == 3;
        assert_eq!(slot.kind == SlotKind::Empty, empty, "slot {index}");
        assert_eq!(slot.answered.is_none(), empty);
        assert_eq!(slot.status, (!empty).then_some(200));
        if let Some(answered) = slot.answered {
            assert!(slot.end.since(answered).unwrap() >= gap);
        }
    }
    assert!(lap.slots.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(lap.slots.last().unwrap().end, lap.span.end);
}

#[test]
fn connections_are_kept_from_lap_to_lap() {
    let (server, address) = Server::start();
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    driver.connect(address, 4).unwrap();
    for load in [CLOSED, Load::Serial { gap: Nanos(1) }, CLOSED] {
        let lap = order(address, requests(&["/"]), load, Stop::Requests(8));
        assert_eq!(driver.lap(lap).unwrap().good, 8);
    }
    assert_eq!(server.accepted.load(Ordering::Relaxed), 4);
}

#[test]
fn a_subject_that_is_gone_ends_the_lap_and_says_so() {
    // Answers nothing: accepts until four connections stand and the first request has come, then
    // stops listening.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut streams: Vec<_> = (0..4).map(|_| listener.accept().unwrap().0).collect();
        let mut request = [0];
        for stream in &mut streams {
            let _begun = std::io::Read::read(stream, &mut request);
        }
        drop((listener, streams));
    });
    let lap = drive(order(address, requests(&["/"]), CLOSED, Stop::Requests(1_000_000)));
    server.join().unwrap();
    let Ending::Gone(reason) = &lap.ending else { panic!("{:?}", lap.ending) };
    assert_eq!(reason, "3 connections in a row were refused");
    assert_balanced(&lap);
}

#[test]
fn nobody_listening_is_said_before_a_lap_begins() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    let lap = order(address, requests(&["/"]), CLOSED, Stop::Requests(1));
    let error = driver.lap(lap).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot connect to {address}: ")), "{error}");
}

#[test]
fn the_wish_to_stop_is_seen_inside_a_lap() {
    let (_, address) = Server::start();
    for path in ["/", "/never"] {
        let cancel = Cancel::default();
        let driver = Driver::start(&[], cancel.clone()).unwrap();
        let order = order(address, requests(&[path]), CLOSED, Stop::After(Duration::MAX));
        let raise = cancel.clone();
        let raised = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            raise.cancel();
        });
        assert_eq!(driver.lap(order).unwrap().ending, Ending::Cancelled);
        raised.join().unwrap();
    }
}

#[test]
fn post_bodies_and_headers_are_sent() {
    let (_, address) = Server::start();
    let mut posts = Requests::default();
    posts.add("POST", "/echo", [("content-type", "text/plain")], Some(b"ping")).unwrap();
    let posts = posts.expecting(&[Bytes::from_static(b"ping")]);
    let lap = drive(order(address, posts, CLOSED, Stop::Requests(5)));
    assert_eq!((lap.good, lap.body_bytes), (5, 20));
}

#[test]
fn an_order_that_makes_no_sense_is_refused() {
    let (_, address) = Server::start();
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    let refuse = |requests, load| {
        driver.lap(order(address, requests, load, Stop::Requests(1))).unwrap_err().to_string()
    };
    let nothing = refuse(Requests::default(), CLOSED);
    assert_eq!(nothing, "a lap needs at least one connection and one request");
    let still = refuse(requests(&["/"]), Load::FixedRate { connections: 1, rate: 0.0 });
    assert_eq!(still, "a fixed rate must be a number above zero");
}

fn gate(paths: &[&str]) -> Gate {
    let route = GatedRoute {
        name: "page".to_owned(),
        requests: Arc::new(requests(paths)),
        answers_vary: false,
    };
    Gate::new(vec![route], Duration::from_secs(10))
}

#[test]
fn the_gate_admits_equal_bodies_and_hands_them_to_the_laps() {
    let (_, first) = Server::start();
    let (_, second) = Server::start();
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    let mut gate = gate(&["/a", "/b"]);
    assert!(gate.expecting("page").is_none());
    gate.admit(&driver, "ping on", first).unwrap();
    gate.admit(&driver, "ping off", second).unwrap();
    let expecting = gate.expecting("page").unwrap();
    let lap = drive(order(second, expecting, CLOSED, Stop::Requests(10)));
    assert_eq!(lap.good, 10);
    assert!(gate.expecting("other").is_none());
}

#[test]
fn the_gate_refuses_a_page_that_is_never_the_same() {
    let (_, address) = Server::start();
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    let error = gate(&["/number"]).admit(&driver, "ping on", address).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ping on, route page: GET /number is answered differently each time, from line 1 on\n  \
         ping on: 0\n  ping on: 1"
    );
}

#[test]
fn answers_that_may_vary_need_a_good_status_only() {
    let (server, address) = Server::start();
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    let varying = |path: &str| {
        let requests = Arc::new(requests(&[path]));
        let route = GatedRoute { name: "page".to_owned(), requests, answers_vary: true };
        Gate::new(vec![route], Duration::from_secs(10))
    };
    let mut gate = varying("/number");
    gate.admit(&driver, "one", address).unwrap();
    gate.admit(&driver, "other", address).unwrap();
    let expecting = gate.expecting("page").unwrap();
    assert_eq!(drive(order(address, expecting, CLOSED, Stop::Requests(10))).good, 10);
    server.seen.store(2, Ordering::Relaxed);
    let error = varying("/every-third-fails").admit(&driver, "one", address).unwrap_err();
    assert!(matches!(error, GateError::Status { status: 503, .. }));
}

/// The document's load: as many connections at once, each POST answered with its own body.
#[test]
fn three_thousand_connections_are_held_and_every_request_is_accounted_for() {
    const CONNECTIONS: u32 = 3_000;
    let (server, address) = Server::start();
    let mut posts = Requests::default();
    posts.add("POST", "/echo", [("content-type", "text/plain")], Some(b"one")).unwrap();
    posts.add("POST", "/echo", [("content-type", "text/plain")], Some(b"two")).unwrap();
    let posts = posts.expecting(&[Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
    let load = Load::Closed { connections: CONNECTIONS };
    let lap = drive(order(address, posts, load, Stop::Requests(12_000)));
    assert_balanced(&lap);
    assert_eq!((lap.requests, lap.good), (12_000, 12_000), "{:?}", lap.errors);
    assert_eq!(server.accepted.load(Ordering::Relaxed), u64::from(CONNECTIONS));
    let told: u64 = lap.timeline.iter().map(|slice| slice.answers).sum();
    assert!(told <= 12_000, "{told} answers in whole seconds");
}

#[test]
fn the_gate_refuses_an_error_and_shows_how_it_begins() {
    let (server, address) = Server::start();
    server.seen.store(2, Ordering::Relaxed);
    let driver = Driver::start(&[], Cancel::default()).unwrap();
    let error = gate(&["/every-third-fails"]).admit(&driver, "a", address).unwrap_err();
    assert!(matches!(error, GateError::Status { status: 503, .. }));
    assert_eq!(
        error.to_string(),
        "a, route page: GET /every-third-fails is answered with status 503: busy"
    );
}
