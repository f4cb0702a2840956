"""What the daemon relies on of the process itself: one listener, no dump, nothing left unreaped."""

import ctypes
import os
import socket
import sys
import time

PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
REAP_INTERVAL_SECONDS = 30
DOWNLOADS = "/tmp/browser-use-downloads-"


def take_descriptor(variable):
    """The number of an inherited descriptor, which no child inherits from here on."""
    number = int(os.environ.pop(variable))
    os.set_inheritable(number, False)
    return number


def forbid_dumps():
    """Other processes of this user may not read this one's memory, environment or descriptors."""
    if sys.platform == "linux" and ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE was refused")


def is_dumpable():
    return ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)


def listening_sockets():
    """Every listening socket this process holds: [{"family", "address"}], read from the kernel's own tables."""
    inodes = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for family, path in (("inet", "/proc/self/net/tcp"), ("inet6", "/proc/self/net/tcp6")):
        try:
            with open(path) as table:
                rows = table.readlines()[1:]
        except FileNotFoundError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append({"family": family, "address": fields[1]})
    with open("/proc/self/net/unix") as table:
        for row in table.readlines()[1:]:
            fields = row.split()
            if int(fields[3], 16) & 0x10000 and fields[6] in inodes:
                found.append({"family": "unix", "address": fields[7] if len(fields) > 7 else ""})
    return found


def refuse_other_listeners(allowed_number):
    """No socket of this process is bound or made to listen, but the inherited one."""
    refused = OSError("gatepost: this process may not listen")

    def audit(event, _arguments):
        if event == "socket.bind":
            raise refused

    def listen(self, *arguments):
        if self.fileno() != allowed_number:
            raise refused
        return original_listen(self, *arguments)

    original_listen = socket.socket.listen
    socket.socket.listen = listen
    sys.addaudithook(audit)


def make_no_downloads():
    """The server's browser tool, which is never used here, makes a directory in /tmp when it is imported, and nobody removes
    it: it is not made."""
    original = os.mkdir

    def mkdir(path, *arguments, **named):
        if not os.fsdecode(path).startswith(DOWNLOADS):
            original(path, *arguments, **named)

    os.mkdir = mkdir


def adopted_zombies():
    """Ended processes that fell to this one and that none of its own code waits for: those of other sessions."""
    own_session = os.getsid(0)
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as children:
                pids = children.read().split()
        except OSError:
            continue
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat") as stat:
                    state, _parent, _group, session = stat.read().rsplit(")", 1)[1].split()[:4]
            except OSError:
                continue
            if state == "Z" and int(session) != own_session:
                found.add(int(pid))
    return found


def reap_adopted():
    """The daemon makes this process adopt what its tree orphans, so that nothing of it escapes; here they are reaped."""
    seen = set()
    while True:
        time.sleep(REAP_INTERVAL_SECONDS)
        zombies = adopted_zombies()
        # Twice seen: whoever started it had the time to wait for it.
        for pid in zombies & seen:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        seen = zombies
