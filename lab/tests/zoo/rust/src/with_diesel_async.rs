//! diesel-async, which speaks through tokio-postgres, and its pool by deadpool.

use anyhow::{Context, Result, bail};
use diesel::prelude::*;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};

use crate::talk::{Talk, User, url};

diesel::table! {
    zoo (id) {
        id -> Integer,
        name -> Text,
    }
}

#[derive(Default)]
struct Client {
    connection: Option<AsyncPgConnection>,
    pool: Option<Pool<AsyncPgConnection>>,
}

pub async fn serve(mut talk: Talk) -> Result<()> {
    talk.version("diesel-async 0.7.4");
    let mut client = Client::default();
    while let Some(operation) = talk.next().await {
        let outcome = client.perform(&operation).await;
        talk.answer(outcome);
    }
    Ok(())
}

impl Client {
    async fn perform(&mut self, operation: &str) -> Result<()> {
        match operation {
            "connect" => {
                let url = url(User::Trusted);
                self.connection = Some(AsyncPgConnection::establish(&url).await?);
            }
            "dsl query" | "dsl query again" => {
                let connection = self.connection.as_mut().context("not connected")?;
                let names = zoo::table.filter(zoo::id.eq(1)).select(zoo::name);
                drop(names.load::<String>(connection).await?);
            }
            "open a pool" => {
                let manager = AsyncDieselConnectionManager::new(url(User::Trusted));
                let pool = Pool::builder(manager).max_size(1).build()?;
                drop(pool.get().await?);
                self.pool = Some(pool);
            }
            "take from the pool" => {
                drop(self.pool.as_ref().context("no pool is open")?.get().await?);
            }
            _ => bail!("unknown operation"),
        }
        Ok(())
    }
}
