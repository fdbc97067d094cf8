//! What a run keeps of what was typed, without what is secret in it: bodies, credentials in headers
//! and environment, passwords in URLs.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// Stands for a secret.
const MASK: &str = "***";
/// A header or a variable with one of these in its name holds a secret.
const SECRET: [&str; 10] = [
    "auth",
    "cookie",
    "credential",
    "passw",
    "secret",
    "token",
    "session",
    "apikey",
    "privatekey",
    "csrf",
];

/// The text of an experiment without its secrets; all else, comments too, stays as it was typed
/// where that is possible.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let Ok(mut table) = text.parse::<Table>() else { return String::new() };
    let mut secrets = Vec::new();
    mask_table(&mut table, &mut secrets);
    // A secret that is part of another one is replaced after it.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let copy = secrets.iter().fold(text.to_owned(), |copy, secret| copy.replace(secret, MASK));
    // Typed with escapes, or so short that it stands elsewhere as well: then it is written anew.
    let faithful = copy.parse::<Table>().is_ok_and(|again| again == table);
    if faithful { copy } else { toml::to_string(&table).unwrap_or_default() }
}

/// The words of a command line without their secrets.
#[must_use]
pub fn words(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let (mut is_header, mut is_body) = (false, false);
    let masked = words.into_iter().map(|mut word| {
        if std::mem::take(&mut is_body) {
            return MASK.to_owned();
        }
        if word.starts_with("--data=") {
            return format!("--data={MASK}");
        }
        is_body = word == "--data";
        let option = ["--header", "-H"].contains(&word.as_str());
        let (head, value) = word.split_once(':').unwrap_or((&word, ""));
        let name = head.strip_prefix("--header=").or(is_header.then_some(head));
        let secret = name.is_some_and(is_secret) && !value.is_empty();
        is_header = option;
        if secret {
            return format!("{head}: {MASK}");
        }
        mask_password(&mut word, &mut Vec::new());
        word
    });
    masked.collect()
}

/// The environment of an arm without its secrets.
#[must_use]
pub fn environment(environment: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let masked = environment.into_iter().map(|(name, mut value)| {
        mask_named(&name, &mut value, &mut Vec::new());
        (name, value)
    });
    masked.collect()
}

fn mask_table(table: &mut Table, secrets: &mut Vec<String>) {
    for (key, value) in table.iter_mut() {
        match (key.as_str(), value) {
            ("headers" | "env", Value::Table(named)) => {
                for (name, value) in named.iter_mut() {
                    if let Value::String(text) = value {
                        mask_named(name, text, secrets);
                    }
                }
            }
            ("body", Value::String(text)) => mask(text, secrets),
            (_, value) => mask_value(value, secrets),
        }
    }
}

fn mask_value(value: &mut Value, secrets: &mut Vec<String>) {
    match value {
        Value::Table(table) => mask_table(table, secrets),
        Value::Array(values) => values.iter_mut().for_each(|value| mask_value(value, secrets)),
        Value::String(text) => mask_password(text, secrets),
        _ => {}
    }
}

fn mask_named(name: &str, text: &mut String, secrets: &mut Vec<String>) {
    if is_secret(name) {
        mask(text, secrets);
    } else {
        mask_password(text, secrets);
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.to_ascii_lowercase().replace(['-', '_'], "");
    SECRET.iter().any(|word| plain.contains(word))
}

fn mask(text: &mut String, secrets: &mut Vec<String>) {
    if !text.is_empty() && !is_placeholder(text) {
        secrets.push(std::mem::replace(text, MASK.to_owned()));
    }
}

/// `{address}` and its like name something; they are no secret themselves.
fn is_placeholder(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| {
        !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    })
}

/// `scheme://user:secret@host` loses its secret.
fn mask_password(text: &mut String, secrets: &mut Vec<String>) {
    let Some(password) = password(text) else { return };
    let masked = text.replacen(&format!(":{password}@"), &format!(":{MASK}@"), 1);
    secrets.push(password);
    *text = masked;
}

fn password(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    let (login, _) = authority.rsplit_once('@')?;
    let (_, password) = login.split_once(':')?;
    (!password.is_empty() && password != MASK).then(|| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_everything_else_stays_as_it_was_typed() {
        let text = "# mine\nname = \"x\"\n[[subject]]\nenv = { API_TOKEN = \"t0ken-1\", N = \"1\", \
                    URL = \"redis://:pass-2@h/\", DATABASE_URL = \"{postgres.url}\" }\n\
                    [[route]]\nbody = \"name=body-3\"\n[route.headers]\n\
                    Authorization = \"Bearer 4-four\"\naccept = \"text/html\"\n";
        let copy = without_secrets(text);
        for secret in ["t0ken-1", "pass-2", "body-3", "4-four"] {
            assert!(!copy.contains(secret), "{secret}: {copy}");
        }
        for kept in ["# mine", "N = \"1\"", "{postgres.url}", "accept = \"text/html\"", "redis://:"]
        {
            assert!(copy.contains(kept), "{kept}: {copy}");
        }
    }

    #[test]
    fn a_secret_that_cannot_be_cut_out_is_written_anew() {
        for body in ["a", "line\\u0041 \\\"quoted\\\""] {
            let text = format!("name = \"a-name\"\n[[route]]\nbody = \"{body}\"\n");
            let copy = without_secrets(&text);
            assert!(copy.contains("a-name") && copy.contains("***"), "{copy}");
            assert!(!copy.contains("quoted") && !copy.contains("\"a\""), "{copy}");
        }
        assert_eq!(without_secrets("= broken"), "");
    }

    #[test]
    fn passwords_and_credentials_on_a_command_line_are_not_kept() {
        for (typed, kept) in [
            (
                "--postgres-url=postgres://me:s3cr:et@db:5432/x?a=b@c",
                "--postgres-url=postgres://me:***@db:5432/x?a=b@c",
            ),
            ("redis://:pw@h", "redis://:***@h"),
            ("postgres://me@h/x", "postgres://me@h/x"),
            ("--quick", "--quick"),
            ("--header=cookie: id=1", "--header=cookie: ***"),
            ("--data=name=me", "--data=***"),
        ] {
            assert_eq!(words([typed.to_owned()]), [kept]);
        }
        let typed = ["-H", "Authorization: Bearer x:y", "--header", "accept: a", "--data", "b"];
        let kept = ["-H", "Authorization: ***", "--header", "accept: a", "--data", "***"];
        assert_eq!(words(typed.map(str::to_owned)), kept);
    }

    #[test]
    fn variables_that_are_called_so_are_secret() {
        let kept = environment(BTreeMap::from([
            ("GITHUB_TOKEN".to_owned(), "abc".to_owned()),
            ("GOGC".to_owned(), "400".to_owned()),
        ]));
        assert_eq!((kept["GITHUB_TOKEN"].as_str(), kept["GOGC"].as_str()), ("***", "400"));
    }
}
