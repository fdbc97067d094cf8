//! The blog on actix-web: the same queries, templates and loop as axum-sqlx, from the same files,
//! so that only what carries them differs.
//!
//! Settings come from the environment: `DATABASE_URL`, `REDIS_URL`, `BIND`, `ACQUIRE` and `PING` as
//! for axum-sqlx, `WORKERS`, and the choice that the experiment compares, `POOL`: one pool that all
//! workers share, or for each worker its share of the connections (`per-worker`).

mod cache;
#[path = "../../axum-sqlx/src/compute.rs"]
mod compute;
#[path = "../../axum-sqlx/src/data.rs"]
mod data;
mod pages;

use std::env;
use std::str::FromStr;
use std::sync::Arc;

use actix_web::web::{self, ServiceConfig};
use actix_web::{App, HttpServer};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tera::Tera;

/// Connections to Postgres at most, over all workers.
const CONNECTIONS_MAX: u32 = 16;
/// Connections that are kept open at least, over all workers.
const CONNECTIONS_MIN: u32 = 4;

/// What every handler of a worker shares.
#[derive(Clone)]
pub struct Blog {
    pool: PgPool,
    acquire: Acquire,
    templates: Arc<Tera>,
    redis: redis::aio::ConnectionManager,
}

/// How often a page takes a connection from the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// Once for each query.
    Query,
    /// Once for the page.
    Page,
}

/// What the environment says.
#[derive(Clone)]
struct Settings {
    database: PgConnectOptions,
    redis: redis::Client,
    bind: String,
    acquire: Acquire,
    ping: bool,
    per_worker: bool,
    workers: u32,
    templates: Arc<Tera>,
}

type Failed = Box<dyn std::error::Error>;

impl Settings {
    fn read() -> Result<Self, Failed> {
        Ok(Self {
            database: PgConnectOptions::from_str(&setting("DATABASE_URL")?)?,
            redis: redis::Client::open(setting("REDIS_URL")?)?,
            bind: setting("BIND")?,
            acquire: choice("ACQUIRE", &[("query", Acquire::Query), ("page", Acquire::Page)])?,
            ping: choice("PING", &[("on", true), ("off", false)])?,
            per_worker: choice("POOL", &[("shared", false), ("per-worker", true)])?,
            workers: setting("WORKERS")?.parse()?,
            templates: Arc::new(pages::templates()?),
        })
    }

    /// Opens `1 / shares` of the connections. Their sockets belong to the runtime of the thread
    /// that opens them.
    async fn blog(&self, shares: u32) -> Result<Blog, Failed> {
        let pool = PgPoolOptions::new()
            .max_connections((CONNECTIONS_MAX / shares).max(1))
            .min_connections((CONNECTIONS_MIN / shares).max(1))
            .test_before_acquire(self.ping)
            .connect_with(self.database.clone())
            .await?;
        let redis = self.redis.get_connection_manager().await?;
        Ok(Blog { pool, acquire: self.acquire, templates: Arc::clone(&self.templates), redis })
    }
}

fn setting(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
}

fn choice<T: Copy>(name: &str, known: &[(&str, T)]) -> Result<T, String> {
    let typed = setting(name)?;
    let found = known.iter().find(|(word, _)| *word == typed);
    let words = || known.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
    found.map(|&(_, value)| value).ok_or_else(|| format!("{name} is {typed:?}, not {}", words()))
}

#[actix_web::main]
async fn main() -> Result<(), Failed> {
    let settings = Settings::read()?;
    let bind = settings.bind.clone();
    let workers = settings.workers;
    let server = if settings.per_worker {
        HttpServer::new(move || {
            let settings = settings.clone();
            App::new()
                .data_factory(move || {
                    let settings = settings.clone();
                    async move { settings.blog(settings.workers).await }
                })
                .configure(routes)
        })
        .workers(workers as usize)
        .bind(bind)?
        .run()
    } else {
        let blog = web::Data::new(settings.blog(1).await?);
        HttpServer::new(move || App::new().app_data(blog.clone()).configure(routes))
            .workers(workers as usize)
            .bind(bind)?
            .run()
    };
    Ok(server.await?)
}

fn routes(service: &mut ServiceConfig) {
    service
        .route("/ready", web::get().to(async || "ready"))
        .route("/", web::get().to(pages::index))
        .route("/post/{slug}", web::get().to(pages::detail))
        .route("/tag/{slug}", web::get().to(pages::tag))
        .route("/cached", web::get().to(cache::index))
        .route("/cached/post/{slug}", web::get().to(cache::detail))
        .route("/compute", web::get().to(compute::page));
}
