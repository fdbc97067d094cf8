//! One endpoint that takes an experiment as JSON, checks it, and answers with it.
//!
//! Settings come from the environment: `BIND`, and the choice that the experiment compares, `HASH`:
//! `off` answers with the experiment as it came, `on` with the MD5 of its name and the time in the
//! name's place.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// What is to be tried, and how much of the traffic sees which.
#[derive(Debug, Deserialize, Serialize)]
struct Experiment {
    name: String,
    variants: Vec<Variant>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Variant {
    name: String,
    allocation_percent: f64,
}

impl Experiment {
    /// What is wrong with it, if anything.
    fn fault(&self) -> Option<&'static str> {
        let total: f64 = self.variants.iter().map(|variant| variant.allocation_percent).sum();
        if self.name.is_empty() || self.variants.iter().any(|variant| variant.name.is_empty()) {
            Some("a name is empty")
        } else if self.variants.iter().any(|variant| variant.allocation_percent < 0.0) {
            Some("an allocation is below 0")
        } else if (total - 100.0).abs() > 1e-6 {
            Some("allocations do not add up to 100")
        } else {
            None
        }
    }
}

fn hash(name: &str, seconds: u64) -> String {
    format!("{:x}", md5::compute(format!("{name}-{seconds}")))
}

async fn create(
    State(hashed): State<bool>,
    Json(mut experiment): Json<Experiment>,
) -> Result<Json<Experiment>, (StatusCode, &'static str)> {
    if let Some(fault) = experiment.fault() {
        return Err((StatusCode::UNPROCESSABLE_ENTITY, fault));
    }
    if hashed {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        experiment.name = hash(&experiment.name, now.as_secs());
    }
    Ok(Json(experiment))
}

fn setting(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hashed = match setting("HASH")?.as_str() {
        "on" => true,
        "off" => false,
        other => return Err(format!("HASH is {other:?}, not on or off").into()),
    };
    let listener = TcpListener::bind(setting("BIND")?).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let routes = Router::new()
        .route("/ready", get(|| async { "ready" }))
        .route("/experiments", post(create))
        .with_state(hashed);
    axum::serve(listener, routes)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"name":"page","variants":[{"name":"blue","allocation_percent":50.0},
        {"name":"red","allocation_percent":50.0}]}"#;

    fn sent(body: &str) -> Json<Experiment> {
        Json(serde_json::from_str(body).unwrap())
    }

    #[tokio::test]
    async fn what_is_right_comes_back_as_it_was_sent() {
        let Json(answer) = create(State(false), sent(BODY)).await.unwrap();
        assert_eq!((answer.name.as_str(), answer.variants.len()), ("page", 2));
    }

    #[tokio::test]
    async fn the_hash_stands_in_the_place_of_the_name() {
        let Json(answer) = create(State(true), sent(BODY)).await.unwrap();
        assert_eq!(answer.name.len(), 32);
        // echo -n page-1700000000 | md5sum
        assert_eq!(hash("page", 1_700_000_000), "b96990e02fe109caed9631614c8113bf");
    }

    #[tokio::test]
    async fn allocations_must_add_up() {
        let (status, fault) =
            create(State(false), sent(&BODY.replacen("50.0", "60.0", 1))).await.unwrap_err();
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(fault, "allocations do not add up to 100");
    }
}
