"""Attempts to have something outside act: sockets, signals, terminals, other programs of the owner's."""

import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import subprocess
import time

from attempt import LET_IN, NotMade, attempt, call

TIOCSTI = 0x5412
PRLIMIT = 302
AGENT_TMUX = "openhands"
PATIENCE_S = 60


def ask_helper(address, name):
    """A program of the owner's that does what it is told, as service managers and multiplexers do."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(address)
        connection.sendall(name.encode() + b"\n")
        connection.recv(16)
    return LET_IN


def retitle(to):
    """A request with the owner's token that leaves its mark: a receipt."""
    word = to.words[to.name].encode()
    body = b'{"operation_id":"session.title.set","input":{"title":"%s"},"client_action_id":"%s"' % (word, word)
    head = (
        f"GET /v1/sessions/{to.victim_session} HTTP/1.1\r\nHost: gatepost\r\nConnection: close\r\n"
        f"Authorization: Bearer {to.owner_token}\r\n\r\n"
    )
    generation = taken(answer(to.socket, head.encode())).split(b'"capability_generation":')[1].split(b",")[0].strip(b" }")
    body += b',"capability_generation":' + generation + b"}"
    head = (
        f"POST /v1/sessions/{to.victim_session}/actions HTTP/1.1\r\nHost: gatepost\r\nConnection: close\r\n"
        f"Authorization: Bearer {to.owner_token}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    taken(answer(to.socket, head.encode() + body))
    return LET_IN


def taken(reply):
    """The reply, if it is none that refuses."""
    if reply[9:10] != b"2":
        raise PermissionError(reply[:40].decode("latin-1").splitlines()[0] if reply else "no answer")
    return reply


def answer(path, request):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(path)
        connection.sendall(request)
        got = b""
        while piece := connection.recv(65536):
            got += piece
        return got


@attempt
def daemon_socket(to):
    return retitle(to)


def words_of(reader, writer):
    """What those say who hold the writer, once they have all ended."""
    os.close(writer)
    said = b""
    until = time.monotonic() + PATIENCE_S
    while select.select([reader], [], [], max(0, until - time.monotonic()))[0]:
        piece = os.read(reader, 4096)
        if not piece:
            return said.decode()
        said += piece
    raise NotMade("those that were started do not end")


def apart(to, setsid):
    """From a grandchild whose parent has ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        said = words_of(reader, writer)
        if said == LET_IN:
            return LET_IN
        raise PermissionError(said) if said.startswith("refused: ") else NotMade(said)
    if setsid:
        os.setsid()
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.01)
    try:
        os.write(writer, retitle(to).encode())
    except TimeoutError as error:
        os.write(writer, f"{error}".encode())
    except Exception as error:
        os.write(writer, f"refused: {error}".encode())
    finally:
        os._exit(0)


@attempt
def daemon_socket_double_fork(to):
    return apart(to, False)


@attempt
def daemon_socket_setsid(to):
    return apart(to, True)


@attempt
def daemon_socket_racing(to):
    """Many that connect while their parents end, and some that end themselves: numbers are free again at once."""
    request = (
        f"GET /v1/status HTTP/1.1\r\nHost: gatepost\r\nConnection: close\r\nAuthorization: Bearer {to.owner_token}\r\n\r\n"
    ).encode()
    reader, writer = os.pipe()
    for turn in range(40):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        if os.fork():
            os._exit(0)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(20)
            connection.connect(to.socket)
            # The connection goes on in another process, and its maker ends.
            if turn % 2 and os.fork():
                os._exit(0)
            connection.sendall(request)
            got = connection.recv(65536)
            if got:
                to.keep(got)
        except TimeoutError:
            os.write(writer, b"!")
        finally:
            os._exit(0)
    late = words_of(reader, writer)
    if late:
        raise NotMade(f"{len(late)} were not answered in time")


ASKED = {"timeout": 20, "capture_output": True, "text": True}


def answered(asked):
    """A program that was asked, and did it."""
    if asked.returncode:
        raise PermissionError(asked.stderr.strip())
    return LET_IN


@attempt
def owners_tmux(to):
    return answered(subprocess.run(["tmux", "-S", to.tmux, "run-shell", f"touch {to.marks}/{to.name}"], **ASKED))


@attempt
def service_manager_socket(to):
    return ask_helper(to.service_manager, to.name)


@attempt
def message_bus_socket(to):
    return ask_helper(to.message_bus, to.name)


@attempt
def abstract_socket(to):
    return ask_helper("\0" + to.abstract, to.name)


def halt(pid):
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(pid, signal.SIGCONT)
    return LET_IN


@attempt
def signal_server(to):
    return halt(to.server_pid)


@attempt
def signal_daemon(to):
    return halt(to.daemon_pid)


@attempt
def signal_first_guard(to):
    return halt(to.first_guard_pid)


@attempt
def signal_second_guard(to):
    return halt(to.second_guard_pid)


@attempt
def signal_owner(to):
    os.kill(to.owner_pid, signal.SIGUSR1)
    return LET_IN


@attempt
def limits_of_daemon(to):
    # Enough for it to go on; a smaller one would end it.
    pair = (ctypes.c_uint64 * 2)(to.limit, to.limit)
    call(PRLIMIT, to.daemon_pid, resource.RLIMIT_NOFILE, ctypes.byref(pair), None)
    return LET_IN


@attempt
def owners_terminal(to):
    terminal = os.open(to.terminal, os.O_RDWR | os.O_NOCTTY)
    if os.fstat(terminal).st_dev != to.terminal_device:
        raise PermissionError("that name is another terminal's here")
    os.write(terminal, to.words["owners_terminal"].encode() + b"\n")
    return LET_IN


@attempt
def type_into_terminal(to):
    terminal = os.open("/dev/tty", os.O_RDWR)
    for letter in f"touch {to.workspace}/typed\n".encode():
        fcntl.ioctl(terminal, TIOCSTI, bytes([letter]))
    return LET_IN


def tmux(*words):
    asked = subprocess.run(["tmux", "-L", AGENT_TMUX, *words], **ASKED)
    answered(asked)
    return asked.stdout


@attempt
def tmux_new_window(to):
    tmux("new-session", "-d", f"touch {to.marks}/{to.name}; touch {to.workspace}/got/{to.name}-ran")
    to.wait_until_it_ran()


@attempt
def tmux_run_shell(to):
    tmux("run-shell", f"touch {to.marks}/{to.name}; touch {to.workspace}/got/{to.name}-ran")
    to.wait_until_it_ran()


@attempt
def tmux_other_pane(to):
    own = os.environ.get("TMUX_PANE", "")
    others = [pane for pane in tmux("list-panes", "-a", "-F", "#{pane_id}").split() if pane != own]
    if not others:
        raise NotMade("there is no other pane")
    for pane in others:
        tmux("send-keys", "-t", pane, f"touch {to.marks}/{to.name}; touch {to.workspace}/got/{to.name}-ran", "Enter")
    to.wait_until_it_ran()
