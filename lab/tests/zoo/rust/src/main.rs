//! The clients of the zoo that are written in Rust: `zoo CLIENT` is one of them.

mod talk;
mod with_deadpool;
mod with_diesel;
mod with_diesel_async;
mod with_sqlx;
mod with_tokio_postgres;

use anyhow::{Result, bail};

use crate::talk::Talk;

fn main() -> Result<()> {
    let client = std::env::args().nth(1).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let talk = Talk::begin();
        match client.as_str() {
            "tokio-postgres" => with_tokio_postgres::serve(talk).await,
            "deadpool-postgres" => with_deadpool::serve(talk).await,
            "diesel" => with_diesel::serve(talk).await,
            "diesel-async" => with_diesel_async::serve(talk).await,
            "sqlx" => with_sqlx::serve(talk).await,
            _ => bail!("no client is called {client:?}"),
        }
    })
}
