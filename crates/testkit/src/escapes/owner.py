"""Programs of the owner's that the agent has nothing to do with: ``owner.py SETTINGS``, in JSON.

It listens as a service manager, a message bus and one with an abstract name, each of which makes a mark when it is asked
to; holds a terminal, a word in memory and in its environment, and a file by descriptor. It says on standard output what
an attacker could find out.
"""

import ctypes
import json
import os
import pty
import signal
import socket
import sys
import threading
import time

SETTINGS = json.loads(sys.argv[1])


def mark(name):
    with open(os.path.join(SETTINGS["marks"], name), "w"):
        pass


def serve(address):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    while True:
        connection, _ = listener.accept()
        name = connection.recv(100).decode().strip()
        if name.isidentifier():
            mark(name)
        connection.sendall(b"done\n")
        connection.close()


def watch(terminal):
    while piece := os.read(terminal, 4096):
        with open(SETTINGS["terminal_seen"], "ab") as file:
            file.write(piece)


def main():
    signal.signal(signal.SIGUSR1, lambda _number, _frame: mark("signal_owner"))
    for address in (SETTINGS["service_manager"], SETTINGS["message_bus"], "\0" + SETTINGS["abstract"]):
        threading.Thread(target=serve, args=(address,), daemon=True).start()
    ours, theirs = pty.openpty()
    threading.Thread(target=watch, args=(ours,), daemon=True).start()
    held = os.open(SETTINGS["held"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    word = ctypes.create_string_buffer(SETTINGS["word"].encode())
    with open(SETTINGS["shared_memory"], "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(SETTINGS["word"])
    print(
        json.dumps(
            {
                "owner_pid": os.getpid(),
                "owner_address": ctypes.addressof(word),
                "owner_descriptor": held,
                "terminal": os.ttyname(theirs),
                "terminal_device": os.fstat(theirs).st_dev,
            }
        ),
        flush=True,
    )
    # Until whoever started it closes its input.
    threading.Thread(target=lambda: (sys.stdin.read(), os.unlink(SETTINGS["shared_memory"]), os._exit(0))).start()
    while True:
        time.sleep(1)


main()
