//! deadpool-postgres, with each way of recycling a connection.

use anyhow::{Context, Result, bail};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::NoTls;

use crate::talk::{Talk, User, url};

const PARAMETER: &str = "SELECT name FROM zoo WHERE id = $1";

pub async fn serve(mut talk: Talk) -> Result<()> {
    talk.version("deadpool-postgres 0.14.2");
    let mut pool = None;
    while let Some(operation) = talk.next().await {
        let outcome = perform(&operation, &mut pool).await;
        talk.answer(outcome);
    }
    Ok(())
}

async fn perform(operation: &str, pool: &mut Option<Pool>) -> Result<()> {
    let recycling = match operation {
        "open a pool, fast" => Some(RecyclingMethod::Fast),
        "open a pool, verified" => Some(RecyclingMethod::Verified),
        "open a pool, clean" => Some(RecyclingMethod::Clean),
        _ => None,
    };
    if let Some(recycling_method) = recycling {
        let config = url(User::Trusted).parse()?;
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method });
        let opened = Pool::builder(manager).max_size(1).build()?;
        drop(opened.get().await?);
        *pool = Some(opened);
        return Ok(());
    }
    let client = pool.as_ref().context("no pool is open")?.get().await?;
    match operation {
        "take from the pool" => {}
        "prepare_cached and query" | "again" => {
            let statement = client.prepare_cached(PARAMETER).await?;
            client.query(&statement, &[&1]).await?;
        }
        _ => bail!("unknown operation"),
    }
    Ok(())
}
