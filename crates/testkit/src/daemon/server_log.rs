//! What the daemon asked of a server, as the server's own log tells it.

use std::path::{Path, PathBuf};

/// One request that reached the server and was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
}

impl UpstreamRequest {
    /// Whether it is about this conversation, or one of what is below it.
    #[must_use]
    pub fn is_about(&self, conversation_id: &str) -> bool {
        self.target.starts_with(&format!("/api/conversations/{conversation_id}"))
    }

    /// Whether it only reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.method == "GET"
    }
}

/// The log of one server.
#[derive(Debug, Clone)]
pub struct ServerLog {
    path: PathBuf,
}

impl ServerLog {
    /// The log of the only server below this state directory.
    #[must_use]
    pub fn of_only_server(state: &Path) -> Option<Self> {
        let bindings = std::fs::read_dir(state.join("bindings")).ok()?;
        let mut logs = bindings.flatten().map(|entry| entry.path().join("server.log")).filter(|path| path.is_file());
        let path = logs.next()?;
        logs.next().is_none().then_some(Self { path })
    }

    /// The log in this file.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Every request of the API so far, in the order in which they were answered.
    #[must_use]
    pub fn requests(&self) -> Vec<UpstreamRequest> {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // The server breaks its lines into columns: a request runs from its method over several lines to its version.
        text.split(" - \"").skip(1).filter_map(read_request).collect()
    }
}

fn read_request(text: &str) -> Option<UpstreamRequest> {
    let (request, _) = text.split_once("HTTP/1.1\"")?;
    let mut words = request.split_whitespace();
    let method = words.next()?.to_owned();
    let target: String = words.filter(|word| !word.starts_with("h11_impl.py:")).collect();
    target.starts_with("/api/").then_some(UpstreamRequest { method, target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_over_several_lines_is_put_together() {
        let text = "[11/30/26 03:36:59] INFO     127.0.0.1:56044 - \"POST             h11_impl.py:482\n                             \
                    /api/conversations/0d7d9038-73b8-4e\n                             00-804c-ff6593164ccc/events\n\
                                                 HTTP/1.1\" 200\nnoise - \"GET /alive HTTP/1.1\" 200\n - \"GET";
        let directory = tempfile::tempdir().unwrap();
        let binding = directory.path().join("bindings/b");
        std::fs::create_dir_all(&binding).unwrap();
        std::fs::write(binding.join("server.log"), text).unwrap();
        let requests = ServerLog::of_only_server(directory.path()).unwrap().requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert_eq!(requests[0].method, "POST");
        assert!(requests[0].is_about("0d7d9038-73b8-4e00-804c-ff6593164ccc") && !requests[0].is_read());
        assert!(requests[0].target.ends_with("/events"));
    }
}
