//! The loopback socket that the daemon binds and its child serves on.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

use rustix::net::{AddressFamily, bind, listen};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens on 127.0.0.1 at a port that the kernel chooses; close-on-exec, without address reuse, so that no other
/// process can bind the port while the descriptor (or the child's copy) is open. Returns the listener and its port.
///
/// # Errors
/// When no port or descriptor is left.
pub fn bind_loopback() -> io::Result<(TcpListener, u16)> {
    let socket = crate::io_util::stream_socket(AddressFamily::INET)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    listen(&socket, BACKLOG)?;
    let listener = TcpListener::from(socket);
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

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
