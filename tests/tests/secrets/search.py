"""What an approved command can find of gatepost's keys: run by the agent's own shell, as the agent's user.

Looks for texts that look like a key (64 hexadecimal digits) wherever this user can read, and tries everything that
it found as the server's key. Writes what it learned as JSON, keys by their SHA-256 only, so that the search itself
puts no key into a file.

Arguments: the file to write, the file of the model's key, then directories to search; the first is the daemon's state
directory.
"""

import ctypes
import hashlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request

KEY = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
CHUNK_BYTES = 1 << 20
MAX_REGION_BYTES = 256 << 20
MAX_FILE_BYTES = 64 << 20
MAX_CANDIDATES = 3000
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438

found = {}


def note(data, where):
    for match in KEY.finditer(data):
        if len(found) < MAX_CANDIDATES:
            found.setdefault(match.group().decode(), set()).add(where)


def attempt(action):
    """"ok", or the name of the error."""
    try:
        action()
        return "ok"
    except OSError as error:
        return os.strerror(error.errno) if error.errno else type(error).__name__


def read_whole(path, where):
    with open(path, "rb") as file:
        note(file.read(MAX_FILE_BYTES), where)


def read_memory(pid, where):
    with open(f"/proc/{pid}/maps") as table:
        regions = [line.split() for line in table]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for region in regions:
            if "r" not in region[1] or region[-1] in ("[vvar]", "[vsyscall]"):
                continue
            begin, end = (int(edge, 16) for edge in region[0].split("-"))
            if end - begin > MAX_REGION_BYTES:
                continue
            rest = b""
            for at in range(begin, end, CHUNK_BYTES):
                try:
                    memory.seek(at)
                    data = memory.read(min(CHUNK_BYTES, end - at))
                except (OSError, ValueError, OverflowError):
                    break
                note(rest + data, where)
                rest = data[-65:]


def read_descriptors(pid, where):
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                read_whole(path, where)
        except OSError:
            pass


def system_call(number, *arguments):
    result = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def seize(pid):
    library = ctypes.CDLL(None, use_errno=True)
    if library.ptrace(PTRACE_SEIZE, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "")
    library.ptrace(PTRACE_DETACH, pid, None, None)


def take_descriptor(pid):
    process = system_call(SYS_PIDFD_OPEN, pid, 0)
    try:
        os.close(system_call(SYS_PIDFD_GETFD, process, 3, 0))
    finally:
        os.close(process)


def read_by_system_call(pid):
    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    library = ctypes.CDLL(None, use_errno=True)
    library.process_vm_readv.restype = ctypes.c_ssize_t
    buffer = ctypes.create_string_buffer(8)
    # The address needs not be right: who may not read gets EPERM before it is looked at.
    ours = Vector(ctypes.cast(buffer, ctypes.c_void_p), 8)
    theirs = Vector(ctypes.cast(buffer, ctypes.c_void_p), 8)
    if library.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "")


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def command_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")


def children_of(parent):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and is_child(int(name), parent)]


def is_child(pid, parent):
    try:
        return parent_of(pid) == parent
    except OSError:
        return False


def server_guards_and_daemon():
    """Whatever the server starts hangs below the inner guard, as the server does; above it are the outer one and the daemon."""
    pid = os.getpid()
    while b"__guard" not in command_of(pid):
        pid = parent_of(pid)
        if pid <= 1:
            raise SystemExit("no guard above this process")
    inner, outer = pid, parent_of(pid)
    servers = [child for child in children_of(inner) if b"openhands.agent_server" in command_of(child)]
    return servers[0], inner, outer, parent_of(outer)


def ways_into(pid):
    where = "guarded"
    ways = {
        "environ": lambda: read_whole(f"/proc/{pid}/environ", where),
        "maps": lambda: read_whole(f"/proc/{pid}/maps", where),
        "mem": lambda: read_memory(pid, where),
        "mem, opened": lambda: open(f"/proc/{pid}/mem", "rb").close(),
        "mem, for writing": lambda: open(f"/proc/{pid}/mem", "r+b").close(),
        "fd": lambda: read_descriptors(pid, where),
        "fd 3": lambda: read_whole(f"/proc/{pid}/fd/3", where),
        "cwd": lambda: os.listdir(f"/proc/{pid}/cwd"),
        "root": lambda: os.listdir(f"/proc/{pid}/root"),
        "exe": lambda: os.readlink(f"/proc/{pid}/exe"),
        "auxv": lambda: read_whole(f"/proc/{pid}/auxv", where),
        "process_vm_readv": lambda: read_by_system_call(pid),
        "ptrace": lambda: seize(pid),
        "pidfd_getfd": lambda: take_descriptor(pid),
    }
    return {name: attempt(way) for name, way in ways.items()}


def start_decoy():
    """A process of the agent's own with something that looks like a key in its environment, and another in its memory
    alone: the search must find both."""
    program = (
        "import hashlib, time\n"
        "key = hashlib.sha256(b'decoy in memory').hexdigest()\n"
        "print('ready', flush=True)\n"
        "time.sleep(120)\n"
    )
    environment = {**os.environ, "DECOY": digest("decoy in an environment")}
    decoy = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    decoy.stdout.readline()
    return decoy


def search_processes(guarded):
    counts = {"cmdline": 0, "environ": 0, "mem": 0}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        pid = int(entry)
        for file in ("cmdline", "environ"):
            if attempt(lambda: read_whole(f"/proc/{pid}/{file}", file)) == "ok":
                counts[file] += 1
        if pid not in guarded:
            if attempt(lambda: read_memory(pid, "mem")) == "ok":
                counts["mem"] += 1
            attempt(lambda: read_descriptors(pid, "fd"))
    return counts


def search_files(directories):
    read = 0
    for top in directories:
        for directory, _, names in os.walk(top):
            for name in names:
                path = os.path.join(directory, name)
                try:
                    if not stat.S_ISREG(os.lstat(path).st_mode):
                        continue
                    read_whole(path, "file")
                    read += 1
                except OSError:
                    pass
    return read


def try_as_server_key(port):
    """Which candidates the server takes, and how many it was asked with."""
    taken, tried = [], 0
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for candidate in found:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/conversations/count", headers={"X-Session-API-Key": candidate}
        )
        try:
            status = opener.open(request, timeout=10).status
        except urllib.error.HTTPError as error:
            status = error.code
        tried += 1
        if status != 401:
            taken.append({"sha256": digest(candidate), "status": status})
    return taken, tried


def ask_the_daemon(socket_path):
    """What a request from here gets from the daemon's own socket: the bytes of the answer, if any."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        try:
            connection.connect(socket_path)
            connection.sendall(b"GET /v1/healthz HTTP/1.1\r\nHost: gatepost\r\nConnection: close\r\n\r\n")
            return len(connection.recv(4096))
        except (ConnectionError, FileNotFoundError):
            return 0


def keep_talking():
    """A command that says nothing for some seconds is left to itself by the agent's terminal."""
    pause = threading.Event()
    while not pause.wait(2):
        print("searching", flush=True)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def main():
    output, model_key, directories = sys.argv[1], sys.argv[2], sys.argv[3:]
    threading.Thread(target=keep_talking, daemon=True).start()
    state = directories[0]
    server, inner, outer, daemon = server_guards_and_daemon()
    command = command_of(server)
    port = int(command[command.index(b"--port") + 1])
    decoy = start_decoy()
    try:
        known = {"server": server, "inner guard": inner, "outer guard": outer, "daemon": daemon}
        ways = {name: ways_into(pid) for name, pid in known.items()}
        own = len(KEY.findall("\0".join(f"{name}={value}" for name, value in os.environ.items()).encode()))
        processes = search_processes({server, daemon})
    finally:
        decoy.kill()
        decoy.wait()
    files = search_files(directories)
    taken, tried = try_as_server_key(port)
    key_files = [os.path.join(state, "owner.token"), os.path.join(state, "secret.key"), model_key]
    report = {
        "user": os.getuid(),
        "server": server,
        "daemon": daemon,
        "ways": ways,
        "own_environment": own,
        "processes": processes,
        "files": files,
        "key_files": {path: attempt(lambda: read_whole(path, "file")) for path in key_files},
        "state_directory": attempt(lambda: os.listdir(state)),
        "found": {digest(key): sorted(places) for key, places in found.items()},
        "taken_by_server": taken,
        "tried": tried,
        "answer_bytes_of_daemon": ask_the_daemon(os.path.join(state, "run", "gatepost.sock")),
    }
    with open(output + ".part", "w") as file:
        json.dump(report, file)
    os.rename(output + ".part", output)
    print("searched", flush=True)


main()
