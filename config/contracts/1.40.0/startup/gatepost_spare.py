"""A spare: the process has imported what a server imports, knows no workspace and no key, and waits to be told of one.

What it is told is all that an ordinary start is given: from there on it goes the very way of one. Until then it starts no
program and reads no configuration. Its own directories hold nothing: once it is told, the daemon has put links to the
workspace's in their places, so that what modules read of HOME and the others at import leads there.
"""

import ast
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile

import _posixsubprocess

from gatepost_door import OTHER_WAYS

# They read the configuration when they are imported: what they import is imported, they are not.
READ_AT_IMPORT = ("openhands.agent_server.api", "openhands.agent_server.sockets")
# Imported only when the server serves, or answers its first question.
IMPORTED_LATER = (
    "openhands.tools.browser_use.impl",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.wsproto_impl",
)
GO = b"go\n"
MAX_DESCRIPTORS = 8
MAX_LINE_BYTES = 1 << 20


def imported_by(module):
    """What a module's own text imports when it is imported, without importing it."""
    with open(importlib.util.find_spec(module).origin, "rb") as source:
        tree = ast.parse(source.read())
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 0:
            yield statement.module
        elif isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)


def import_all():
    for module in (*READ_AT_IMPORT, *IMPORTED_LATER):
        names = imported_by(module) if module in READ_AT_IMPORT else (module,)
        for name in names:
            if name not in READ_AT_IMPORT:
                importlib.import_module(name)


def import_unconfigured():
    """Import it all, while no program can be started and no configuration be read: neither can be that of a workspace yet."""
    from openhands.agent_server import config

    start, load = _posixsubprocess.fork_exec, config.load_config
    refused = PermissionError("gatepost: a spare starts no program")
    is_importing = True

    def start_nothing(*_arguments):
        raise refused

    def audit(event, _arguments):
        if is_importing and event in OTHER_WAYS:
            raise refused

    def load_nothing(*_arguments, **_named):
        raise RuntimeError("gatepost: a spare has no configuration")

    _posixsubprocess.fork_exec = subprocess._fork_exec = start_nothing
    config.load_config = load_nothing
    sys.addaudithook(audit)
    import_all()
    is_importing = False
    _posixsubprocess.fork_exec = subprocess._fork_exec = start
    config.load_config = load
    if config._default_config is not None or any(module in sys.modules for module in READ_AT_IMPORT):
        raise RuntimeError("gatepost: a spare was configured")


def read_order(control):
    """The descriptors and the words of the order to begin; the end of the file ends this process."""
    word, descriptors, flags, _address = socket.recv_fds(control, len(GO), MAX_DESCRIPTORS)
    if word != GO or flags & socket.MSG_CTRUNC:
        raise SystemExit("gatepost: the spare is not needed")
    line = b""
    while not line.endswith(b"\n"):
        piece = control.recv(65536)
        line += piece
        if not piece or len(line) > MAX_LINE_BYTES:
            raise SystemExit("gatepost: the order to begin was cut off")
    return descriptors, json.loads(line)


def take_places(descriptors, numbers):
    """Each descriptor gets the number that it has in an ordinary start; a placeholder held it until now."""
    if len(descriptors) != len(numbers):
        raise RuntimeError("gatepost: descriptors are missing")
    for descriptor, number in zip(descriptors, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def become(order, descriptors):
    """Have what an ordinary start has: descriptors, environment, working directory."""
    take_places(descriptors, order["descriptors"])
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    # Found at import, by the environment of then.
    tempfile.tempdir = None


def wait_for_workspace(control_number, said):
    """Import everything, say that this process waits, and come back as one that was just started for a workspace."""
    import_unconfigured()
    control = socket.socket(fileno=os.dup(control_number))
    control.sendall(json.dumps({"waiting": said}).encode() + b"\n")
    descriptors, order = read_order(control)
    control.close()
    become(order, descriptors)
