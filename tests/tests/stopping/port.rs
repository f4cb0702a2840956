//! A stranger that wants the server's port.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(2);

/// Tries again and again to bind the port (with address reuse, as a server does that comes back), and listens to whoever
/// connects once it has it.
pub(crate) struct Squatter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Caught>,
}

/// What a stranger got.
#[derive(Debug, Default)]
pub(crate) struct Caught {
    /// How often the port was refused.
    pub(crate) refusals: usize,
    /// Connections that came, with what was said on them.
    pub(crate) connections: Vec<String>,
}

impl Squatter {
    pub(crate) fn start(port: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut caught = Caught::default();
            let mut listener: Option<TcpListener> = None;
            while !stopped.load(Ordering::Relaxed) {
                match &listener {
                    None => match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                        Ok(bound) => {
                            bound.set_nonblocking(true).unwrap();
                            listener = Some(bound);
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::AddrInUse);
                            caught.refusals += 1;
                        }
                    },
                    Some(bound) => match bound.accept() {
                        Ok((stream, _)) => caught.connections.push(overhear(stream)),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    },
                }
                std::thread::sleep(LOOK);
            }
            caught
        });
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Caught {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn overhear(mut stream: TcpStream) -> String {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut words = [0_u8; 4096];
    let heard = stream.read(&mut words).unwrap_or_default();
    String::from_utf8_lossy(&words[..heard]).into_owned()
}

/// The port that a server was started with.
pub(crate) fn port_of(server: u32) -> u16 {
    let command = std::fs::read(format!("/proc/{server}/cmdline")).unwrap();
    let words: Vec<&str> = command.split(|byte| *byte == 0).map(|word| std::str::from_utf8(word).unwrap()).collect();
    let port = words.iter().position(|word| *word == "--port").unwrap();
    words[port + 1].parse().unwrap()
}
