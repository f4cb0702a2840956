"""The one door to other processes: each goes through the wrapper that confines it, or does not start.

`_posixsubprocess.fork_exec` is where `subprocess`, `asyncio` and `multiprocessing` start programs; every other way that
Python has is refused. Tools that work inside this process do so in a thread that has given up what their commands have.
"""

import contextvars
import ctypes
import os
import subprocess
import sys
import threading

import _posixsubprocess

PR_SET_NO_NEW_PRIVS = 38
LANDLOCK_RESTRICT_SELF = 446
# Nothing stands there and nothing can be put there: what starts it fails as for any program that is missing.
MISSING_PROGRAM = b"/proc/0/exe"
PROBE_SECONDS = 20
WITHHELD = (b"DYLD_", b"GATEPOST_", b"GLIBC_", b"HOME=", b"LD_", b"LITELLM_", b"LOG_", b"OH_", b"OPENHANDS_")
# What was put in place, by its use.
INSTALLED = {}
OTHER_WAYS = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn")


def program_of(executables, directory):
    """The file that would be executed: the first of the candidates that can be."""
    here = os.path.join(os.getcwdb(), os.fsencode(directory or b""))
    found = [path for path in (os.path.join(here, os.fsencode(path)) for path in executables) if os.path.exists(path)]
    runnable = [path for path in found if os.access(path, os.X_OK)]
    return (runnable or found or [MISSING_PROGRAM])[0]


def environment_of(given, home):
    """What a child is given: HOME is the agent's, since this process reads its own; nothing of this process's own, and
    nothing that the loader of the wrapper would obey before it confines itself."""
    entries = [name + b"=" + value for name, value in os.environb.items()] if given is None else given
    return [entry for entry in entries if not entry.startswith(WITHHELD)] + [b"HOME=" + home]


def withhold_from_terminals(home):
    """A terminal's variables go to the shell by way of tmux, which knows none of this."""
    from openhands.tools.terminal import env

    original = env.sanitized_env

    def sanitized_env(given=None):
        entries = [os.fsencode(f"{name}={value}") for name, value in original(given).items()]
        return dict(os.fsdecode(entry).split("=", 1) for entry in environment_of(entries, home))

    env.sanitized_env = sanitized_env


def route_children(starter, words, descriptors, home):
    """Every program that this process starts is started by the starter: what confines it, told so by the words before the
    program's own. The starter and the descriptors that it needs are open since the daemon proved them."""
    original = _posixsubprocess.fork_exec
    before = tuple(os.fsencode(word) for word in words)
    starter = os.fsencode(starter)

    def fork_exec(arguments, executables, close_fds, kept, directory, environment, *rest):
        program = program_of(executables, directory)
        if program == MISSING_PROGRAM:
            return original(arguments, [program], close_fds, kept, directory, environment, *rest)
        arguments = [*before, program, *(os.fsencode(argument) for argument in arguments)]
        kept = tuple(sorted({*kept, *descriptors}))
        return original(arguments, [starter], close_fds, kept, directory, environment_of(environment, home), *rest)

    INSTALLED["fork_exec"] = fork_exec
    _posixsubprocess.fork_exec = fork_exec
    subprocess._fork_exec = fork_exec
    subprocess._USE_POSIX_SPAWN = False


def probe(prober, targets):
    """What a process says that tries what it can still do, started as the agent's commands are."""
    try:
        tried = subprocess.run(
            [prober, "__probe", targets],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"
    return tried.stdout.decode(errors="replace")


def refuse_other_ways():
    refused = PermissionError("gatepost: a process is started through the door or not at all")

    def audit(event, _arguments):
        if event in OTHER_WAYS:
            raise refused

    INSTALLED["refused"] = refused
    sys.addaudithook(audit)


def confine_thread(domain_number):
    """Give up, for the calling thread and for good, what the agent's commands may not reach. Without a domain (macOS has none
    for a thread) it is refused, and so is what was to be done there."""
    if domain_number is None:
        raise OSError("gatepost: no thread can be confined on this system")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no new privileges")
    if libc.syscall(LANDLOCK_RESTRICT_SELF, domain_number, 0) != 0:
        raise OSError(ctypes.get_errno(), "the domain")


def call_confined(domain_number, function):
    """Call it in a new thread that is confined first; what it returns or raises comes back."""
    outcome = {}
    context = contextvars.copy_context()

    def work():
        try:
            confine_thread(domain_number)
            outcome["value"] = context.run(function)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=work, name="gatepost-confined")
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


# They work with what the agent gave them through a process of its own, or with the conversation's own record alone.
NOT_IN_PROCESS = {
    "openhands.sdk.tool.builtins.finish",
    "openhands.sdk.tool.builtins.think",
    "openhands.tools.task_tracker.definition",
    "openhands.tools.terminal.impl",
}


def confine_tools(domain_number):
    """Tools that open the agent's paths inside this process may open what its commands may."""
    from openhands.sdk.tool.tool import ToolDefinition

    original_call = ToolDefinition.__call__

    def call(self, action, conversation=None):
        if type(self.executor).__module__ in NOT_IN_PROCESS:
            return original_call(self, action, conversation)
        return call_confined(domain_number, lambda: original_call(self, action, conversation))

    INSTALLED["call"] = call
    ToolDefinition.__call__ = call


def refuses(event):
    """Whether what was installed refuses this. Nothing is done: the interpreter is only told of it, as it would be."""
    try:
        sys.audit(event)
    except PermissionError as error:
        return error is INSTALLED.get("refused")
    return False


def is_only_door():
    """Whether the very functions that were installed are still the way to other processes, and the other ways refused."""
    from multiprocessing import util

    from openhands.sdk.tool.tool import ToolDefinition

    # Where each module looks it up when it starts a program.
    starts = (sys.modules["_posixsubprocess"].fork_exec, _posixsubprocess.fork_exec, subprocess._fork_exec)
    bound = getattr(util, "_posixsubprocess", _posixsubprocess).fork_exec
    is_one = all(start is INSTALLED.get("fork_exec") for start in (*starts, bound))
    is_one = is_one and ToolDefinition.__call__ is INSTALLED.get("call")
    return is_one and not subprocess._USE_POSIX_SPAWN and all(refuses(event) for event in OTHER_WAYS)
