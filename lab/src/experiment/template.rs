//! Templates in commands and environments: `{postgres.url}`, `{redis.url}`, `{address}`, `{port}`.

use std::net::SocketAddr;

use super::nearest;
use super::read::Fault;

/// What may stand between braces.
const NAMES: [&str; 4] = ["postgres.url", "redis.url", "address", "port"];

/// Which services an experiment has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Whether there is a Postgres.
    pub(super) postgres: bool,
    /// Whether there is a Redis.
    pub(super) redis: bool,
}

/// What templates are replaced by.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    /// For `{postgres.url}`.
    pub postgres_url: Option<&'a str>,
    /// For `{redis.url}`.
    pub redis_url: Option<&'a str>,
    /// For `{address}` and `{port}`: where the subject shall listen.
    pub address: SocketAddr,
}

/// A stretch of text: as it is, or a name between braces.
enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Braces count as a template only around a word with dots, so that JSON stays as it is.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        let inner = &from[1..];
        let length = inner
            .bytes()
            .take_while(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'_'))
            .count();
        let closed = length > 0 && inner[length..].starts_with('}');
        if closed {
            parts.push(Part::Text(before));
            parts.push(Part::Name(&inner[..length]));
            rest = &inner[length + 1..];
        } else {
            parts.push(Part::Text(&rest[..=open]));
            rest = inner;
        }
    }
    parts.push(Part::Text(rest));
    parts
}

/// Refuses unknown names, and services that the experiment does not have.
pub(super) fn check_template(place: &str, text: &str, offer: Offer) -> Result<(), Fault> {
    for part in parts(text) {
        let Part::Name(name) = part else { continue };
        let missing = match name {
            "postgres.url" if !offer.postgres => Some("[services.postgres]"),
            "redis.url" if !offer.redis => Some("[services.redis]"),
            _ => None,
        };
        if let Some(missing) = missing {
            let message = format!("{{{name}}} needs {missing}, which is not there");
            return Err(Fault::at(place, message));
        }
        if !NAMES.contains(&name) {
            let hint = nearest(name, NAMES)
                .map_or(String::new(), |near| format!("; did you mean {{{near}}}?"));
            return Err(Fault::at(place, format!("there is no template {{{name}}}{hint}")));
        }
    }
    Ok(())
}

/// Replaces the templates in `text`.
#[must_use]
pub fn expand(text: &str, values: &Values<'_>) -> String {
    let mut expanded = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Text(text) => expanded.push_str(text),
            Part::Name("postgres.url") => expanded.push_str(values.postgres_url.unwrap_or("")),
            Part::Name("redis.url") => expanded.push_str(values.redis_url.unwrap_or("")),
            Part::Name("address") => expanded.push_str(&values.address.to_string()),
            Part::Name("port") => expanded.push_str(&values.address.port().to_string()),
            Part::Name(other) => {
                expanded.push('{');
                expanded.push_str(other);
                expanded.push('}');
            }
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_replaced_and_json_is_left_alone() {
        let values = Values {
            postgres_url: Some("postgres://x"),
            redis_url: None,
            address: "127.0.0.1:8080".parse().unwrap(),
        };
        assert_eq!(
            expand(r#"{"db":"{postgres.url}","at":"{address}","p":{port}} {"#, &values),
            r#"{"db":"postgres://x","at":"127.0.0.1:8080","p":8080} {"#
        );
    }
}
