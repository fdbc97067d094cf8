//! sqlx: one connection, and its pool with and without the test before each acquire.

use anyhow::{Context, Result, bail};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, Executor, PgConnection, PgPool};

use crate::talk::{PLAIN, Talk, User, url};

const PARAMETER: &str = "SELECT name FROM zoo WHERE id = $1";

#[derive(Default)]
struct Client {
    connection: Option<PgConnection>,
    pool: Option<PgPool>,
}

pub async fn serve(mut talk: Talk) -> Result<()> {
    talk.version("sqlx 0.8.6");
    let mut client = Client::default();
    while let Some(operation) = talk.next().await {
        let outcome = client.perform(&operation).await;
        talk.answer(outcome);
    }
    Ok(())
}

async fn query<'c>(connection: impl Executor<'c, Database = sqlx::Postgres>) -> Result<()> {
    sqlx::query(PARAMETER).bind(1).fetch_all(connection).await?;
    Ok(())
}

impl Client {
    async fn perform(&mut self, operation: &str) -> Result<()> {
        match operation {
            "connect" => self.connect(User::Trusted).await,
            "connect, SCRAM" => self.connect(User::Scram).await,
            "open a pool with test" => self.open_pool(true).await,
            "open a pool without test" => self.open_pool(false).await,
            _ if operation.contains("pool") => self.on_pool(operation).await,
            _ => self.on_connection(operation).await,
        }
    }

    async fn connect(&mut self, user: User) -> Result<()> {
        self.connection = Some(PgConnection::connect(&url(user)).await?);
        Ok(())
    }

    async fn open_pool(&mut self, test: bool) -> Result<()> {
        let options = PgPoolOptions::new().max_connections(1).test_before_acquire(test);
        let pool = options.connect(&url(User::Trusted)).await?;
        // The statement is prepared here, so that later operations find it cached.
        query(&pool).await?;
        self.pool = Some(pool);
        Ok(())
    }

    async fn on_connection(&mut self, operation: &str) -> Result<()> {
        let connection = self.connection.as_mut().context("not connected")?;
        match operation {
            "plain query" => drop(connection.execute(PLAIN).await?),
            "query without parameters" | "query without parameters again" => {
                drop(sqlx::query(PLAIN).fetch_all(connection).await?);
            }
            "parameter query" | "again" => query(connection).await?,
            "transaction of 3 cached queries" => {
                let mut transaction = connection.begin().await?;
                for _ in 0..3 {
                    query(&mut *transaction).await?;
                }
                transaction.commit().await?;
            }
            "transaction dropped" => {
                let mut transaction = connection.begin().await?;
                query(&mut *transaction).await?;
            }
            _ => bail!("unknown operation"),
        }
        Ok(())
    }

    async fn on_pool(&mut self, operation: &str) -> Result<()> {
        let pool = self.pool.as_ref().context("no pool is open")?;
        match operation {
            "take from the pool" => drop(pool.acquire().await?),
            "cached query on the pool" => query(pool).await?,
            "3 cached queries on the pool" => {
                for _ in 0..3 {
                    query(pool).await?;
                }
            }
            "3 cached queries on one of the pool" => {
                let mut connection = pool.acquire().await?;
                for _ in 0..3 {
                    query(&mut *connection).await?;
                }
            }
            "transaction dropped on the pool" => {
                let mut transaction = pool.begin().await?;
                query(&mut *transaction).await?;
            }
            "transaction of 3 on the pool" => {
                let mut transaction = pool.begin().await?;
                for _ in 0..3 {
                    query(&mut *transaction).await?;
                }
                transaction.commit().await?;
            }
            _ => bail!("unknown operation"),
        }
        Ok(())
    }
}
