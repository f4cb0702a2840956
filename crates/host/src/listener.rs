//! The loopback socket that the daemon binds and its child serves on.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, bind, listen};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A port of 127.0.0.1 that nobody else can bind, and at which nothing listens yet: whoever connects is refused.
#[derive(Debug)]
pub struct ReservedPort {
    socket: TcpListener,
    port: u16,
}

/// Reserves a port that the kernel chooses; close-on-exec, without address reuse, so that no other process can bind the port
/// while the descriptor (or the child's copy) is open.
///
/// # Errors
/// When no port or descriptor is left.
pub fn reserve_loopback() -> io::Result<ReservedPort> {
    let socket = crate::io_util::stream_socket(AddressFamily::INET)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let socket = TcpListener::from(socket);
    let port = socket.local_addr()?.port();
    Ok(ReservedPort { socket, port })
}

impl ReservedPort {
    /// Its number.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The socket once more, for a child: when one of them is listened at, both are.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn try_clone(&self) -> io::Result<OwnedFd> {
        Ok(self.socket.try_clone()?.into())
    }

    /// Listens at it from here on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn listen(self) -> io::Result<TcpListener> {
        listen(&self.socket, BACKLOG)?;
        Ok(self.socket)
    }
}

/// Listens at a port that was [reserved](reserve_loopback) just now. Returns the listener and its port.
///
/// # Errors
/// When no port or descriptor is left.
pub fn bind_loopback() -> io::Result<(TcpListener, u16)> {
    let reserved = reserve_loopback()?;
    let port = reserved.port();
    Ok((reserved.listen()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_reserved_port_refuses_connections_until_it_is_listened_at_and_nobody_else_can_bind_it() {
        let reserved = reserve_loopback().unwrap();
        let (port, copy) = (reserved.port(), TcpListener::from(reserved.try_clone().unwrap()));
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let error = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let _listener = reserved.listen().unwrap();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        copy.accept().unwrap();
    }

    #[test]
    fn listens_on_loopback_only_and_nobody_else_can_bind_the_port() {
        let (listener, port) = bind_loopback().unwrap();
        assert_eq!(listener.local_addr().unwrap().ip(), Ipv4Addr::LOCALHOST);
        assert!(rustix::io::fcntl_getfd(&listener).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let error = TcpListener::bind((address, port)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        }
    }
}
