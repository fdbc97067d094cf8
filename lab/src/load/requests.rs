//! The requests of one route, built once and sent many times.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

/// Why a request cannot be built from what the experiment says.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Not a method of HTTP.
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// Not a path.
    #[error("`{0}` is not a path that HTTP can carry; percent-encode it")]
    Path(String),
    /// Not a header.
    #[error("`{0}` is not a header that HTTP can carry")]
    Header(String),
}

/// The requests of one route, in the order in which they are sent, over and over.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    items: Vec<Prepared>,
}

/// One request and the body that must come back.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) request: Request<Full<Bytes>>,
    pub(super) expected: Option<Bytes>,
}

impl Requests {
    /// Adds a request. `Host` is sent as `localhost` where `headers` has none: a subject that
    /// puts it into its pages would otherwise differ from arm to arm by its port.
    pub fn add<'a>(
        &mut self,
        method: &str,
        path: &str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: Option<&[u8]>,
    ) -> Result<(), RequestError> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| RequestError::Method(method.to_owned()))?;
        let uri: Uri = path.parse().map_err(|_| RequestError::Path(path.to_owned()))?;
        if !path.starts_with('/') {
            return Err(RequestError::Path(path.to_owned()));
        }
        let body = Full::new(Bytes::copy_from_slice(body.unwrap_or_default()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let sent = request.headers_mut();
        for (name, value) in headers {
            let header = || RequestError::Header(format!("{name}: {value}"));
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| header())?;
            sent.append(key, HeaderValue::from_str(value).map_err(|_| header())?);
        }
        if !sent.contains_key(hyper::header::HOST) {
            sent.insert(hyper::header::HOST, HeaderValue::from_static("localhost"));
        }
        self.items.push(Prepared { request, expected: None });
        Ok(())
    }

    /// The same requests, with the bodies that must come back, in the same order. Where there are
    /// fewer bodies than requests, any body will do for the rest.
    #[must_use]
    pub fn expecting(mut self, bodies: &[Bytes]) -> Self {
        for (item, body) in self.items.iter_mut().zip(bodies) {
            item.expected = Some(body.clone());
        }
        self
    }

    /// How many different requests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Method and path of the request at `index`.
    #[must_use]
    pub fn line(&self, index: usize) -> (String, String) {
        self.items.get(index).map_or_else(Default::default, |item| {
            (item.request.method().to_string(), item.request.uri().to_string())
        })
    }

    /// The request whose turn it is after `sent` others; `None` only where there are none.
    pub(super) fn at(&self, sent: u64) -> Option<&Prepared> {
        let index = sent.checked_rem(self.items.len() as u64)?;
        self.items.get(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_http_cannot_carry_is_refused_in_words() {
        let mut requests = Requests::default();
        let error = requests.add("GET", "no slash", [], None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`no slash` is not a path that HTTP can carry; percent-encode it"
        );
        let error = requests.add("G ET", "/", [], None).unwrap_err();
        assert_eq!(error.to_string(), "`G ET` is not an HTTP method");
        let error = requests.add("GET", "/", [("a b", "c")], None).unwrap_err();
        assert_eq!(error.to_string(), "`a b: c` is not a header that HTTP can carry");
        assert!(requests.is_empty());
    }

    #[test]
    fn requests_take_turns() {
        let mut requests = Requests::default();
        assert!(requests.at(0).is_none());
        requests.add("GET", "/a", [], None).unwrap();
        requests.add("GET", "/b", [], None).unwrap();
        let paths: Vec<_> =
            (0..5).map(|sent| requests.at(sent).unwrap().request.uri().path()).collect();
        assert_eq!(paths, ["/a", "/b", "/a", "/b", "/a"]);
    }
}
