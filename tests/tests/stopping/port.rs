//! A stranger that wants the server's port.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(2);

/// Tries again and again to bind the port (with address reuse, as a server does that comes back), and listens to whoever
/// connects once it has it.
pub(crate) struct Squatter {
    stop: Arc<AtomicBool>,
    refusals: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<String>>,
}

impl Squatter {
    pub(crate) fn start(port: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let refusals = Arc::new(AtomicUsize::new(0));
        let (stopped, refused) = (Arc::clone(&stop), Arc::clone(&refusals));
        let thread = std::thread::spawn(move || {
            let mut heard = Vec::new();
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
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    },
                    Some(bound) => match bound.accept() {
                        Ok((stream, _)) => heard.push(overhear(stream)),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    },
                }
                std::thread::sleep(LOOK);
            }
            heard
        });
        Self { stop, refusals, thread }
    }

    /// How often the port was refused.
    pub(crate) fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }

    /// What was said on each connection that came.
    pub(crate) fn stop(self) -> Vec<String> {
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

/// Whether a process holds the listening socket of a port; nothing when this user may not know.
pub(crate) fn holds(pid: u32, port: u16) -> Option<bool> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let address = format!("0100007F:{port:04X}");
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let inode = rows.into_iter().find(|row| row[1] == address && row[3] == "0A").map(|row| row[9].to_owned()).unwrap();
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let targets = descriptors.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let targets: Vec<_> = targets.collect();
    (!targets.is_empty())
        .then(|| targets.iter().any(|target| target.as_os_str() == format!("socket:[{inode}]").as_str()))
}
