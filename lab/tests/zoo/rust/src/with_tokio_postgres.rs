//! tokio-postgres by itself.

use anyhow::{Context, Result, bail};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, Statement};

use crate::talk::{PLAIN, Talk, User, url};

const PARAMETER: &str = "SELECT name FROM zoo WHERE id = $1";

#[derive(Default)]
struct Zoo {
    client: Option<Client>,
    cached: Option<Statement>,
}

pub async fn serve(mut talk: Talk) -> Result<()> {
    talk.version("tokio-postgres 0.7.18");
    let mut zoo = Zoo::default();
    while let Some(operation) = talk.next().await {
        let outcome = zoo.perform(&operation).await;
        talk.answer(outcome);
    }
    Ok(())
}

impl Zoo {
    async fn perform(&mut self, operation: &str) -> Result<()> {
        match operation {
            "connect" => return self.connect(User::Trusted).await,
            "connect, SCRAM" => return self.connect(User::Scram).await,
            _ => {}
        }
        let client = self.client.as_mut().context("not connected")?;
        match operation {
            "plain query" => drop(client.simple_query(PLAIN).await?),
            "query of text" | "again" => drop(client.query(PARAMETER, &[&1]).await?),
            "query_typed" => drop(client.query_typed(PARAMETER, &[(&1, Type::INT4)]).await?),
            "prepare" => self.cached = Some(client.prepare(PARAMETER).await?),
            "prepared query" => {
                let cached = self.cached.as_ref().context("not prepared")?;
                client.query(cached, &[&1]).await?;
            }
            "transaction of 3 cached queries" => {
                let cached = self.cached.as_ref().context("not prepared")?;
                let transaction = client.transaction().await?;
                for id in [1, 2, 3] {
                    transaction.query(cached, &[&id]).await?;
                }
                transaction.commit().await?;
            }
            "join of 3" => {
                let cached = self.cached.as_ref().context("not prepared")?;
                let query = || client.query(cached, &[&1]);
                let (first, second, third) = tokio::join!(query(), query(), query());
                first.and(second).and(third)?;
            }
            _ => bail!("unknown operation"),
        }
        Ok(())
    }

    async fn connect(&mut self, user: User) -> Result<()> {
        let (client, connection) = tokio_postgres::connect(&url(user), NoTls).await?;
        tokio::spawn(connection);
        self.client = Some(client);
        Ok(())
    }
}
