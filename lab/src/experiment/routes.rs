//! Routes: checked when an experiment is read, and worked out into requests after the seeding.

use std::collections::BTreeMap;
use std::path::Path;

use super::build::{check_name, existing_file};
use super::file::{AnswersFile, ParameterFile, RouteFile};
use super::plan::{PlannedRoute, RequestTarget};
use super::read::Fault;
use super::{Parameter, Route, nearest};

/// At most this many requests are worked out for a route; the lists are then begun anew.
const MOST_TARGETS: usize = 10_000;

/// Header fields that the driver writes itself.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

pub(super) fn route(
    place: &str,
    typed: &RouteFile,
    folder: &Path,
    postgres: bool,
) -> Result<Route, Fault> {
    check_name(&format!("{place}.name"), &typed.name)?;
    let method = typed.method.clone().unwrap_or_else(|| "GET".to_owned());
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        let message = format!("{method:?} is not an HTTP method, such as GET or POST");
        return Err(Fault::at(&format!("{place}.method"), message));
    }
    let fits = |byte: u8| byte.is_ascii_graphic();
    if !typed.path.starts_with('/') || !typed.path.bytes().all(fits) {
        let message = format!("the path {:?} is not / and printable ASCII", typed.path);
        return Err(Fault::at(&format!("{place}.path"), message));
    }
    let mut parameters = BTreeMap::new();
    for (name, typed) in &typed.parameters {
        let place = format!("{place}.parameters.{name}");
        parameters.insert(name.clone(), parameter(&place, typed, folder, postgres)?);
    }
    check_placeholders(place, typed, &parameters)?;
    for (name, value) in &typed.headers {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let place = format!("{place}.headers.{name}");
        if name.is_empty() || !name.bytes().all(token) || value.contains(['\r', '\n', '\0']) {
            return Err(Fault::at(&place, format!("{name:?} is not a header field")));
        }
        if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(Fault::at(&place, format!("{name:?} is set by the load driver")));
        }
    }
    Ok(Route {
        name: typed.name.clone(),
        method,
        path: typed.path.clone(),
        parameters,
        headers: typed.headers.clone(),
        body: typed.body.clone().unwrap_or_default(),
        answers_vary: typed.answers == Some(AnswersFile::Vary),
        query_budget: typed.query_budget,
    })
}

fn parameter(
    place: &str,
    typed: &ParameterFile,
    folder: &Path,
    postgres: bool,
) -> Result<Parameter, Fault> {
    let values = match (&typed.values, &typed.file, &typed.sql) {
        (Some(values), None, None) => values.iter().map(|value| value.0.clone()).collect(),
        (None, Some(file), None) => {
            let path = existing_file(&format!("{place}.file"), file, folder)?;
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Fault::at(
                    &format!("{place}.file"),
                    format!("cannot read {}: {error}", path.display()),
                )
            })?;
            text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
        }
        (None, None, Some(sql)) if postgres => return Ok(Parameter::Sql(sql.clone())),
        (None, None, Some(_)) => {
            let message = "`sql` needs [services.postgres], which is not there";
            return Err(Fault::at(&format!("{place}.sql"), message));
        }
        _ => {
            return Err(Fault::at(place, "needs exactly one of `values`, `file` and `sql`"));
        }
    };
    let values: Vec<String> = values;
    if values.is_empty() {
        return Err(Fault::at(place, "has no value"));
    }
    Ok(Parameter::Values(values))
}

fn check_placeholders(
    place: &str,
    typed: &RouteFile,
    parameters: &BTreeMap<String, Parameter>,
) -> Result<(), Fault> {
    let known = || parameters.keys().map(String::as_str);
    let in_path = placeholders(&typed.path).ok_or_else(|| {
        Fault::at(&format!("{place}.path"), "the braces in the path do not match")
    })?;
    for name in &in_path {
        if !parameters.contains_key(*name) {
            let hint = nearest(name, known())
                .map_or(String::new(), |near| format!("; did you mean {{{near}}}?"));
            let message = format!("{{{name}}} has no entry in `parameters`{hint}");
            return Err(Fault::at(&format!("{place}.path"), message));
        }
    }
    let body = typed.body.as_deref().unwrap_or_default();
    for name in parameters.keys() {
        if !in_path.contains(&name.as_str()) && !body.contains(&format!("{{{name}}}")) {
            let message = format!("{{{name}}} stands neither in the path nor in the body");
            return Err(Fault::at(&format!("{place}.parameters.{name}"), message));
        }
    }
    Ok(())
}

/// The names between braces; `None` when braces do not match.
fn placeholders(path: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = path;
    while let Some(open) = rest.find(['{', '}']) {
        let inner = rest[open..].strip_prefix('{')?;
        let close = inner.find(['{', '}'])?;
        if !inner[close..].starts_with('}') {
            return None;
        }
        names.push(&inner[..close]);
        rest = &inner[close + 1..];
    }
    Some(names)
}

impl Route {
    /// Works out the requests. `values` has the values of every parameter, none of them empty; the
    /// n-th request takes the n-th of each, and shorter lists begin anew.
    #[must_use]
    pub fn planned(&self, values: &BTreeMap<String, Vec<String>>) -> PlannedRoute {
        let longest = values.values().map(Vec::len).max().unwrap_or(1);
        let targets = (0..longest.min(MOST_TARGETS)).map(|n| self.target(n, values)).collect();
        PlannedRoute {
            name: self.name.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            targets,
            answers_vary: self.answers_vary,
            query_budget: self.query_budget,
        }
    }

    fn target(&self, n: usize, values: &BTreeMap<String, Vec<String>>) -> RequestTarget {
        let mut path = self.path.clone();
        let mut body = self.body.clone();
        for (name, values) in values {
            let placeholder = format!("{{{name}}}");
            if let Some(value) = values.get(n % values.len().max(1)) {
                path = path.replace(&placeholder, &percent_encoded(value));
                body = body.replace(&placeholder, value);
            }
        }
        let headers = self.headers.clone().into_iter().collect();
        RequestTarget { path, headers, body: body.into_bytes() }
    }
}

/// RFC 3986, section 2.3: everything but unreserved characters is encoded.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
