//! Carries what comes in on a loopback port to the daemon's socket, for a tool that speaks TCP only.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

/// Bytes carried at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Carries connections until the process ends; the port.
pub(crate) fn start(socket: &Path) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = socket.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let socket = socket.clone();
            thread::spawn(move || carry(client, socket));
        }
    });
    port
}

/// Whoever hangs up first, the other is told.
fn carry(client: TcpStream, socket: PathBuf) -> io::Result<()> {
    let daemon = UnixStream::connect(socket)?;
    let (from_client, to_daemon) = (client.try_clone()?, daemon.try_clone()?);
    let upwards = thread::spawn(move || {
        copy(from_client, &to_daemon).ok();
        to_daemon.shutdown(Shutdown::Write).ok();
    });
    copy(daemon, &client).ok();
    client.shutdown(Shutdown::Both).ok();
    upwards.join().map_err(|_| io::ErrorKind::Other)?;
    Ok(())
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count])?;
    }
}
