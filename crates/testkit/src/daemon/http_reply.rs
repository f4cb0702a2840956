//! Reading one whole HTTP/1.1 reply.

use crate::failure::{Doing, Failure, Outcome};
use serde_json::Value;

/// A whole reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, with their values, in order.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
    /// The body as JSON, null when it is none.
    pub body: Value,
}

impl Reply {
    /// The first header of this (lower-case) name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The body of a reply with this status.
    ///
    /// # Errors
    /// When the status is another one; the failure quotes the body.
    pub fn expect_status(self, status: u16) -> Outcome<Value> {
        if self.status == status {
            return Ok(self.body);
        }
        Err(Failure::new(format!("expected status {status}, got {}: {}", self.status, self.text)))
    }
}

pub(crate) fn parse(bytes: &[u8]) -> Outcome<Reply> {
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let split = split.ok_or_else(|| Failure::new(format!("no whole reply, only {} bytes", bytes.len())))?;
    let head = std::str::from_utf8(&bytes[..split]).doing("the reply's head is not text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let status: u16 = status.ok_or_else(|| Failure::new(format!("no status line: {head}")))?;
    let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers: Vec<_> = lines.filter_map(header).collect();
    let find = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    let payload = &bytes[split + 4..];
    let body = if find("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        unchunk(payload)?
    } else {
        let length = find("content-length").and_then(|length| length.parse::<usize>().ok());
        match length {
            Some(length) if payload.len() < length => {
                return Err(Failure::new(format!("the body was cut off at {} of {length} bytes", payload.len())));
            }
            _ => payload.to_vec(),
        }
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok(Reply { status, headers, text, body })
}

fn unchunk(mut rest: &[u8]) -> Outcome<Vec<u8>> {
    let cut_off = || Failure::new("a chunked body was cut off");
    let mut body = Vec::new();
    loop {
        let line_end = rest.windows(2).position(|window| window == b"\r\n").ok_or_else(cut_off)?;
        let size = std::str::from_utf8(&rest[..line_end]).doing("a chunk size is not text")?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).doing("a chunk size is not a number")?;
        rest = &rest[line_end + 2..];
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(rest.get(..size).ok_or_else(cut_off)?);
        rest = rest.get(size + 2..).ok_or_else(cut_off)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_with_a_length_and_a_chunked_one_are_read() {
        let reply = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-A: b\r\n\r\n{\"a\":1}").unwrap();
        assert_eq!((reply.status, reply.body["a"].as_u64(), reply.header("x-a")), (200, Some(1), Some("b")));
        let reply =
            parse(b"HTTP/1.1 202 A\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n").unwrap();
        assert_eq!((reply.status, reply.text.as_str()), (202, "[1,2]"));
    }

    #[test]
    fn what_is_cut_off_is_no_reply() {
        for bytes in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        ] {
            assert!(parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
