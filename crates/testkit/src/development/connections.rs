//! Sockets and terminals.

use super::Task;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "tcp_on_loopback",
        needs: &["python3"],
        script: r#"
cat > talk.py <<'END'
import socket
server = socket.create_server(('127.0.0.1', 0)); client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b'x'); print(client.recv(1).decode())
END
same "$(python3 talk.py)" x
"#,
    },
    Task {
        name: "udp_on_loopback",
        needs: &["python3"],
        script: r#"
cat > talk.py <<'END'
import socket
server, client = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
server.bind(('127.0.0.1', 0)); client.sendto(b'x', server.getsockname()); print(server.recv(1).decode())
END
same "$(python3 talk.py)" x
"#,
    },
    Task {
        name: "unix_sockets",
        needs: &["python3"],
        script: r#"
cat > talk.py <<'END'
import array, os, socket
for address in ('s', os.environ['TMPDIR'] + '/s', '\0development-%d' % os.getpid()):
    server = socket.socket(socket.AF_UNIX); server.bind(address); server.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(address); server.accept()[0].sendall(b'x'); print(client.recv(1).decode())
    if address[0] != '\0': os.unlink(address)
left, right = socket.socketpair()
socket.send_fds(left, [b'f'], [1]); os.write(socket.recv_fds(right, 1, 1)[1][0], b'passed\n')
END
same "$(python3 -u talk.py)" "x
x
x
passed"
"#,
    },
    Task {
        name: "names_and_interfaces",
        needs: &["python3"],
        script: r#"
same "$(python3 -c 'import socket; print(socket.gethostbyname("localhost"))')" 127.0.0.1
same "$(python3 -c 'import socket; print("lo" in [name for _, name in socket.if_nameindex()])')" True
"#,
    },
    Task {
        name: "curl_to_a_local_server",
        needs: &["python3", "curl"],
        script: r#"
echo served > page
python3 -u -m http.server --bind 127.0.0.1 0 > said 2>&1 & server=$!
soon grep -q 'port [0-9]' said
port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' said)
same "$(curl -s --noproxy '*' "http://127.0.0.1:$port/page")" served; kill $server
"#,
    },
    Task {
        name: "the_controlling_terminal",
        needs: &["python3"],
        script: r#"
cat > terminal.py <<'END'
import pty
pty.spawn(['sh', '-c', 'stty size < /dev/tty > /dev/null && stty -echo && echo on a terminal > /dev/tty; tty'])
END
python3 terminal.py | tr -d '\r' > said
same "$(head -n 1 said)" "on a terminal"
grep -q '^/dev/pts/' said
"#,
    },
    Task {
        name: "script_of_a_session",
        needs: &["script"],
        script: r#"
script -qec 'test -t 1 && echo recorded' typescript > /dev/null
grep -q recorded typescript
"#,
    },
    Task {
        name: "python_reads_what_is_typed",
        needs: &["python3"],
        script: r#"
cat > typed.py <<'END'
import os, pty
pid, terminal = pty.fork()
if pid == 0:
    os.execvp('sh', ['sh', '-c', 'read line; echo "heard $line"'])
os.write(terminal, b'words\n')
said = b''
try:
    while b'heard words' not in said: said += os.read(terminal, 100)
finally:
    print(os.waitpid(pid, 0)[1], said.split()[-2:])
END
same "$(python3 typed.py)" "0 [b'heard', b'words']"
"#,
    },
    Task {
        name: "a_tmux_of_its_own",
        needs: &["tmux"],
        script: r#"
unset TMUX; own() { tmux -L development-$$ -f /dev/null "$@"; }
own new-session -d -s work 'cat > typed'
own send-keys -t work words Enter C-d
soon grep -qx words typed
own kill-server 2> /dev/null || true
"#,
    },
];
