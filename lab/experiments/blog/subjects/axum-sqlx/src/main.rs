//! The blog on axum, sqlx, Tera and Redis: six routes of one page each.
//!
//! Settings come from the environment: `DATABASE_URL`, `REDIS_URL`, `BIND`, and the two choices
//! that the experiment compares, `ACQUIRE` (`query` or `page`) and `PING` (`on` or `off`).

mod cache;
mod compute;
mod data;
mod pages;

use std::env;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use sqlx::postgres::{PgPool, PgPoolOptions};
use tera::Tera;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// What every handler shares.
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

fn setting(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let acquire = match setting("ACQUIRE")?.as_str() {
        "query" => Acquire::Query,
        "page" => Acquire::Page,
        other => return Err(format!("ACQUIRE is {other:?}, not query or page").into()),
    };
    let ping = match setting("PING")?.as_str() {
        "on" => true,
        "off" => false,
        other => return Err(format!("PING is {other:?}, not on or off").into()),
    };
    let pool = PgPoolOptions::new()
        .max_connections(16)
        .min_connections(4)
        .test_before_acquire(ping)
        .connect(&setting("DATABASE_URL")?)
        .await?;
    let redis = redis::Client::open(setting("REDIS_URL")?)?.get_connection_manager().await?;
    let blog = Blog { pool, acquire, templates: Arc::new(pages::templates()?), redis };
    let listener = TcpListener::bind(setting("BIND")?).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    axum::serve(listener, routes(blog))
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}

fn routes(blog: Blog) -> Router {
    Router::new()
        .route("/ready", get(|| async { "ready" }))
        .route("/", get(pages::index))
        .route("/post/{slug}", get(pages::detail))
        .route("/tag/{slug}", get(pages::tag))
        .route("/cached", get(cache::index))
        .route("/cached/post/{slug}", get(cache::detail))
        .route("/compute", get(compute::page))
        .with_state(blog)
}
