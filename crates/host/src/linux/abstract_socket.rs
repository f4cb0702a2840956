//! Unix sockets whose names are in no file system.

use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// A socket that listens under this name while it is open; `None` on a system that has no such names. Nobody is answered.
///
/// # Errors
/// When the name is longer than 107 bytes or taken.
pub fn listen(name: &str) -> io::Result<Option<OwnedFd>> {
    Ok(Some(UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?.into()))
}

/// Connects to that name, and hangs up.
///
/// # Errors
/// The kernel's word: who may not is refused, and nobody may listen.
pub fn connect(name: &str) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_reached_while_it_listens() {
        let name = format!("gatepost-test-{}", std::process::id());
        let listener = listen(&name).unwrap();
        connect(&name).unwrap();
        assert!(listen(&name).is_err(), "the name is taken");
        drop(listener);
        assert_eq!(connect(&name).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(listen(&"x".repeat(200)).is_err());
    }
}
