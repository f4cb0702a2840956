//! Server-sent events out of a chunked reply that is still coming.

use crate::failure::{Failure, Outcome};
use serde_json::Value;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) data: Value,
}

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Frames {
    received: Vec<u8>,
    text: Vec<u8>,
    begun: bool,
}

impl Frames {
    /// Takes bytes in; the frames that are whole with them.
    ///
    /// # Errors
    /// When the reply is no stream: its head has another status than 200, or a chunk has no length.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Outcome<Vec<Frame>> {
        self.received.extend_from_slice(bytes);
        if !self.begun {
            let Some(end) = find(&self.received, b"\r\n\r\n") else { return Ok(Vec::new()) };
            let head = String::from_utf8_lossy(self.received.get(..end).unwrap_or_default()).into_owned();
            if !head.starts_with("HTTP/1.1 200 ") {
                return self.refused(&head, end + 4);
            }
            self.received.drain(..end + 4);
            self.begun = true;
        }
        self.unchunk()?;
        let mut frames = Vec::new();
        while let Some(end) = find(&self.text, b"\n\n") {
            let text: Vec<u8> = self.text.drain(..end + 2).collect();
            frames.extend(parse(&String::from_utf8_lossy(&text)));
        }
        Ok(frames)
    }

    /// A refusal reads like the frame that would have said so.
    fn refused(&mut self, head: &str, body: usize) -> Outcome<Vec<Frame>> {
        match serde_json::from_slice(self.received.get(body..).unwrap_or_default()) {
            Ok(data) => Ok(vec![Frame { id: None, name: "problem".to_owned(), data }]),
            Err(_) => Err(Failure::new(format!("no stream: {head}"))),
        }
    }

    fn unchunk(&mut self) -> Outcome<()> {
        while let Some(end) = find(&self.received, b"\r\n") {
            let line = String::from_utf8_lossy(self.received.get(..end).unwrap_or_default()).into_owned();
            let length = usize::from_str_radix(line.trim(), 16);
            let length = length.map_err(|_| Failure::new(format!("a chunk of the length {line}")))?;
            let Some(chunk) = self.received.get(end + 2..end + 2 + length) else { return Ok(()) };
            if self.received.len() < end + 4 + length {
                return Ok(());
            }
            self.text.extend_from_slice(chunk);
            self.received.drain(..end + 4 + length);
        }
        Ok(())
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// A frame, when the text is one: comments and times to wait are none.
fn parse(text: &str) -> Option<Frame> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let data = serde_json::from_str(field("data:")?).ok()?;
    Some(Frame { id: field("id:").map(str::to_owned), name: field("event:")?.to_owned(), data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

    fn chunk(text: &str) -> String {
        format!("{:x}\r\n{text}\r\n", text.len())
    }

    #[test]
    fn frames_come_whole_however_the_bytes_are_cut() {
        let reply = [
            HEAD.to_owned(),
            chunk("retry: 2000\n\n"),
            chunk("id: c1\nevent: status\ndata: {\"a\":1}\n"),
            chunk("\n: keep-alive\n\nevent: resync\ndata: {}\n\n"),
        ]
        .concat();
        for size in [1, 7, reply.len()] {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for part in reply.as_bytes().chunks(size) {
                found.extend(frames.feed(part).unwrap());
            }
            let first = Frame { id: Some("c1".to_owned()), name: "status".to_owned(), data: json!({"a": 1}) };
            assert_eq!(found, [first, Frame { id: None, name: "resync".to_owned(), data: json!({}) }], "{size}");
        }
    }

    #[test]
    fn a_frame_that_is_cut_off_is_none_and_a_refusal_is_a_problem() {
        let mut frames = Frames::default();
        assert_eq!(frames.feed(format!("{HEAD}{}", chunk("event: status\ndata: {}\n")).as_bytes()).unwrap(), []);
        let refusal = "HTTP/1.1 404 Not Found\r\ncontent-length: 28\r\n\r\n{\"code\":\"session_not_found\"}";
        let found = Frames::default().feed(refusal.as_bytes()).unwrap();
        assert_eq!((found[0].name.as_str(), &found[0].data["code"]), ("problem", &json!("session_not_found")));
        assert!(Frames::default().feed(format!("{HEAD}xyz\r\n").as_bytes()).is_err());
    }
}
