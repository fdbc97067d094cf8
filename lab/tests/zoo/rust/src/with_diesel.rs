//! diesel, which speaks through libpq, and its pool by r2d2.

use anyhow::{Context, Result, bail};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, Pool};
use diesel::sql_query;

use crate::talk::{PLAIN, Talk, User, url};

diesel::table! {
    zoo (id) {
        id -> Integer,
        name -> Text,
    }
}

#[derive(Default)]
struct Client {
    connection: Option<PgConnection>,
    pool: Option<Pool<ConnectionManager<PgConnection>>>,
}

pub async fn serve(mut talk: Talk) -> Result<()> {
    talk.version("diesel 2.3.14");
    let mut client = Client::default();
    while let Some(operation) = talk.next().await {
        let outcome = client.perform(&operation);
        talk.answer(outcome);
    }
    Ok(())
}

/// Without the libpq default, which would offer TLS.
fn quiet(user: User) -> String {
    format!("{}?sslmode=disable", url(user))
}

impl Client {
    fn perform(&mut self, operation: &str) -> Result<()> {
        match operation {
            "connect" => return self.connect(&quiet(User::Trusted)),
            "connect, TLS offered" => return self.connect(&url(User::Trusted)),
            "connect, SCRAM" => return self.connect(&quiet(User::Scram)),
            "open a pool" => return self.open_pool(true),
            "open a pool without test" => return self.open_pool(false),
            "take from the pool" | "take again" => {
                drop(self.pool.as_ref().context("no pool is open")?.get()?);
                return Ok(());
            }
            _ => {}
        }
        let connection = self.connection.as_mut().context("not connected")?;
        match operation {
            "plain query" => connection.batch_execute(PLAIN)?,
            "sql_query" | "sql_query again" => {
                sql_query(PLAIN).execute(connection)?;
            }
            "dsl query" | "dsl query again" => cached(connection, 1)?,
            "transaction of 3 cached queries" => connection
                .transaction(|connection| (1..=3).try_for_each(|id| cached(connection, id)))?,
            _ => bail!("unknown operation"),
        }
        Ok(())
    }

    fn connect(&mut self, url: &str) -> Result<()> {
        self.connection = Some(PgConnection::establish(url)?);
        Ok(())
    }

    fn open_pool(&mut self, test: bool) -> Result<()> {
        let manager = ConnectionManager::new(quiet(User::Trusted));
        let pool = Pool::builder().max_size(1).test_on_check_out(test).build(manager)?;
        self.pool = Some(pool);
        Ok(())
    }
}

fn cached(connection: &mut PgConnection, number: i32) -> QueryResult<()> {
    let names = zoo::table.filter(zoo::id.eq(number)).select(zoo::name);
    names.load::<String>(connection).map(drop)
}
