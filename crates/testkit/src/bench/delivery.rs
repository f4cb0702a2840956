//! From the server's stamp on an event until a waiting reader has it, beside a bare round trip over a socket.

use super::figure::percentile;
use super::line::Line;
use super::stage::{Stage, at_rest};
use super::{Figure, Options, Tell};
use crate::failure::{Doing, Failure, Outcome};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const BOUND_MS: f64 = 5.0;
/// Bytes of a message there and back.
const MESSAGE_BYTES: usize = 512;
/// Round trips for each turn.
const TRIPS: usize = 10;
/// How long the reader may take to be told that a turn has ended.
const LIMIT: Duration = Duration::from_secs(30);
const US_OF_A_DAY: u64 = 86_400_000_000;

pub(super) fn measure(options: &Options, _tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let stage = Stage::start()?;
    let session = stage.sessions(1, 100)?.pop().ok_or_else(|| Failure::new("no session"))?;
    let cursor = session.snapshot()?["cursor"].as_str().unwrap_or_default().to_owned();
    let mut line = stage.line()?;
    line.open_stream(&format!("{}?after={cursor}", session.events()))?;
    let (sender, delivered) = channel();
    // It ends with the daemon, which ends the stream.
    let reader = thread::spawn(move || read(&mut line, &sender));
    let mut echo = Echo::start()?;
    let (mut delivery, mut trips) = (Vec::new(), Vec::new());
    for turn in 0..options.size(150, 3) {
        for _ in 0..TRIPS {
            trips.push(echo.trip()?);
        }
        session.prompt(&format!("say: turn {turn}"))?;
        until_over(&delivered, &format!("turn {turn}"), &mut delivery)?;
        at_rest(&session)?;
    }
    stage.stop()?;
    drop(reader.join());
    let of = |measured: &[f64]| json!({"p50_ms": percentile(measured, 50), "p99_ms": percentile(measured, 99), "tries": measured.len()});
    let over = percentile(&delivery, 99) - percentile(&trips, 99);
    let made_of = json!({"delivery": of(&delivery), "round_trip": of(&trips)});
    Ok(vec![Figure::new("frame_to_reader_p99", over, "ms", BOUND_MS, &made_of)])
}

/// Takes what was delivered, until the agent has said this.
fn until_over(delivered: &Receiver<(f64, Value)>, said: &str, delivery: &mut Vec<f64>) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        let left = LIMIT.saturating_sub(begun.elapsed());
        let (took_ms, event) = delivered.recv_timeout(left).doing("the reader was told nothing")?;
        delivery.push(took_ms);
        if event["kind"] == "agent_message" && event["payload"]["text"] == said {
            return Ok(());
        }
    }
}

/// Reads the server's own events to the stream's end, and says how old each was.
fn read(line: &mut Line, sender: &Sender<(f64, Value)>) {
    while let Ok(piece) = line.next_piece() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = String::from_utf8_lossy(&piece);
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        let event: Value = data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
        // The server's times are without a zone, and the fake one's are those of UTC; our own events have one.
        let stamped = event["at"].as_str().and_then(us_of_day);
        let Some(stamped) = stamped else { continue };
        let now_us = u64::try_from(now.as_micros()).unwrap_or(0) % US_OF_A_DAY;
        // Also over midnight.
        let took_us = (now_us + US_OF_A_DAY - stamped) % US_OF_A_DAY;
        if sender.send((took_us as f64 / 1e3, event)).is_err() {
            return;
        }
    }
}

/// The microsecond of the day in `2026-11-30T18:00:00.000001`.
fn us_of_day(at: &str) -> Option<u64> {
    let (_, time) = at.split_once('T')?;
    let (seconds, fraction) = time.split_once('.')?;
    let mut of_day = 0;
    for word in seconds.split(':') {
        of_day = of_day * 60 + word.parse::<u64>().ok()?;
    }
    (fraction.len() == 6).then_some(of_day * 1_000_000 + fraction.parse::<u64>().ok()?)
}

/// A thread that answers each message with itself.
struct Echo {
    stream: TcpStream,
}

impl Echo {
    fn start() -> Outcome<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing("no port to listen on")?;
        let address = listener.local_addr().doing("a port without an address")?;
        // It ends with the connection.
        thread::spawn(move || {
            let Ok((mut peer, _)) = listener.accept() else { return };
            let mut message = [0; MESSAGE_BYTES];
            while peer.read_exact(&mut message).is_ok() && peer.write_all(&message).is_ok() {}
        });
        let stream = TcpStream::connect(address).doing("the port could not be connected")?;
        stream.set_nodelay(true).doing("the connection could not be set up")?;
        Ok(Self { stream })
    }

    /// How long a message takes there and back, in milliseconds.
    fn trip(&mut self) -> Outcome<f64> {
        let mut message = [7; MESSAGE_BYTES];
        let begun = Instant::now();
        self.stream.write_all(&message).doing("no message could be sent")?;
        self.stream.read_exact(&mut message).doing("no message came back")?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_stamp_is_read_and_another_is_not() {
        assert_eq!(us_of_day("2026-11-30T01:00:02.000003"), Some(3_602_000_003));
        assert_eq!(us_of_day("2026-11-30T01:00:02.003Z"), None);
    }
}
