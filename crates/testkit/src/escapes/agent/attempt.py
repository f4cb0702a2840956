"""What the agent tries: ``attempt.py NAME...``, each attempt in a process of its own.

It is told everything that an attacker could have found out. That it got through is never taken from what it says of itself:
whoever made it look from outside, at what this wrote, changed or left. What it says only tells whether it was made.
"""

import ctypes
import errno
import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = {}
# What an attempt returns that was let in: it has to be seen from outside.
LET_IN = "let in"
PATIENCE_S = 20
# What a busy or full machine answers, or an earlier attempt is the reason of; it says nothing about what stops it.
SHORTAGE = {errno.EAGAIN, errno.EINTR, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EEXIST}


def attempt(function):
    """Makes an attempt of a function, under its name."""
    ATTEMPTS[function.__name__] = function
    return function


class NotMade(Exception):
    """It could not be made, which says nothing about what would have stopped it."""


class Targets:
    """What is attacked, and where what was got goes."""

    def __init__(self, name):
        self.name = name
        with open(os.path.join(HERE, "targets.json")) as file:
            self.__dict__.update(json.load(file))

    def keep(self, data):
        """Write what was got to a file of the workspace."""
        with open(os.path.join(self.workspace, "got", self.name), "ab") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def keep_file(self, path):
        with open(path, "rb") as file:
            self.keep(file.read(1 << 20))

    def say(self, word):
        """How far it came."""
        with open(os.path.join(self.workspace, "got", f"{self.name}.said"), "w") as file:
            file.write(word)

    def wait_until_it_ran(self):
        """What it had started elsewhere leaves a file, confined or not."""
        path = os.path.join(self.workspace, "got", f"{self.name}-ran")
        wait_for(lambda: os.path.exists(path), "what was started did not run")


def call(number, *arguments):
    """A system call; raises what it fails with."""
    whole = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *whole)
    if result == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def wait_for(is_so, otherwise):
    """Until it is so."""
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > until:
            raise NotMade(otherwise)
        time.sleep(0.05)


def make(name):
    """One attempt; in words, how far it came."""
    to = Targets(name)
    to.say("begun")
    try:
        word = ATTEMPTS[name](to) or "tried"
    except Exception as error:
        is_refusal = isinstance(error, OSError) and not isinstance(error, TimeoutError) and error.errno not in SHORTAGE
        word = f"{'refused' if is_refusal else 'not made'}: {type(error).__name__}: {error}"
    to.say(word)
    print(f"{name}: {word}", flush=True)


def main():
    import approving
    import changing
    import lasting
    import reaching
    import reading

    assert approving and changing and lasting and reaching and reading
    for name in sys.argv[1:]:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            # The kernel ends what makes a forbidden call.
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
                Targets(name).say("refused: SIGSYS")
            continue
        make(name)
        os._exit(0)


if __name__ == "__main__":
    # Under one name only, so that the other files find the same table.
    sys.modules["attempt"] = sys.modules["__main__"]
    main()
