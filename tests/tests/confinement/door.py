"""The door of the start-up module, tried in the server's own Python.

Arguments: the wrapper, a workspace, a HOME for children, a file outside, and the number of rules for a thread.

Prints `one door` when everything went as it must.
"""

import asyncio
import errno
import fcntl
import json
import multiprocessing
import os
import posix
import subprocess
import sys
import threading

import gatepost_door as door

F_ADD_SEALS, ALL_SEALS = 1033, 15


def plan(workspace):
    modules = [os.path.dirname(os.path.realpath(file)) for file in (__file__, door.__file__)]
    directories = {"writable": [sys.argv[3]], "readable": modules, "kept": [], "identities": {}}
    python = [os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)]
    whole = {"v": 1, "workspace": workspace, "tmp": workspace, "home": workspace, "environment": python, **directories}
    number = os.memfd_create("plan", os.MFD_ALLOW_SEALING)
    os.write(number, json.dumps({**whole, "strip_environment": ["GATEPOST_", "OH_"]}).encode())
    fcntl.fcntl(number, F_ADD_SEALS, ALL_SEALS)
    return number


def refused(way):
    try:
        way()
    except PermissionError as error:
        assert "gatepost" in str(error), error
        return True
    return False


def status_of(text):
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def confined(text):
    status = status_of(text)
    return (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def own_status():
    with open("/proc/self/status") as file:
        return file.read()


async def asynchronously():
    child = await asyncio.create_subprocess_exec("cat", "/proc/self/status", stdout=subprocess.PIPE)
    said, _ = await child.communicate()
    return said.decode()


def send_status(end):
    end.send(own_status())


def check_children(home):
    run = lambda *words, **more: subprocess.run(*words, capture_output=True, text=True, **more)
    assert confined(run(["cat", "/proc/self/status"]).stdout)
    assert confined(run("cat /proc/self/status", shell=True).stdout)
    assert confined(run(["./link"], cwd="bin").stdout), "a program below the child's directory"
    assert confined(run(["cat", "/proc/self/status"], close_fds=False).stdout), "that is where posix_spawn is used"
    assert confined(asyncio.run(asynchronously()))
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=send_status, args=(theirs,))
    child.start()
    assert confined(ours.recv())
    child.join()
    # What the child is given.
    reader, writer = os.pipe()
    write = f"import os; os.write({writer}, b'kept\\n')"
    assert run([sys.executable, "-c", write], pass_fds=[writer]).returncode == 0
    assert os.read(reader, 10) == b"kept\n"
    given = dict(line.split("=", 1) for line in run(["env"]).stdout.splitlines())
    assert given["HOME"] == home and not [name for name in given if name.startswith(("OH_", "GATEPOST_"))], given
    loaded = {"A": "b", "HOME": "/x", "LD_PRELOAD": "/nothing.so", "LD_AUDIT": "x", "DYLD_INSERT_LIBRARIES": "x", "GLIBC_TUNABLES": "x"}
    given = run(["env"], env=loaded)
    assert sorted(given.stdout.splitlines()) == ["A=b", f"HOME={home}"] and not given.stderr, given
    assert run(["sh", "-c", "echo $0"], executable="/bin/sh").stdout == "sh\n", "the name that it was told it has"
    held = run(["sh", "-c", "ls -l /proc/self/fd"]).stdout
    assert "gatepost" not in held and "plan" not in held, held
    # As without a door: what is missing is missing, and an exit code is one.
    for missing in (["no-such-program"], ["./no-such-program"]):
        try:
            run(missing)
            raise AssertionError(missing)
        except FileNotFoundError as error:
            assert error.errno == errno.ENOENT
    assert run(["sh", "-c", "exit 7"]).returncode == 7


def check_other_ways():
    for way in (
        lambda: os.system("true"),
        lambda: os.fork(),
        lambda: os.forkpty(),
        lambda: os.execv("/bin/true", ["true"]),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: os.posix_spawnp("true", ["true"], {}),
        lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]),
        lambda: posix.fork(),
        lambda: multiprocessing.get_context("fork").Process(target=print).start(),
    ):
        assert refused(way)


def check_threads(domain):
    secret = sys.argv[4]
    assert open(secret).read() == "secret", "this process itself may read it"

    def read():
        with open(secret) as file:
            return file.read()

    try:
        door.call_confined(domain, read)
        raise AssertionError("a confined thread read it")
    except PermissionError as error:
        assert error.errno == errno.EACCES
    assert door.call_confined(domain, lambda: threading.current_thread().name) == "gatepost-confined"
    assert read() == "secret", "only that thread gave it up"
    # Where no thread can be confined, nothing is done in one.
    try:
        door.call_confined(None, read)
        raise AssertionError("a thread that is not confined read it")
    except OSError as error:
        assert "gatepost" in str(error), error


def check_canary(domain):
    """Whatever is put in the door's place shows, also when it says that it is the door."""
    from openhands.sdk.tool.tool import ToolDefinition

    import _posixsubprocess

    door.confine_tools(domain)
    assert door.is_only_door()

    def other(*arguments):
        raise AssertionError(arguments)

    other.gatepost_door = True
    for holder, name in ((_posixsubprocess, "fork_exec"), (subprocess, "_fork_exec"), (ToolDefinition, "__call__")):
        own = getattr(holder, name)
        setattr(holder, name, other)
        assert not door.is_only_door(), name
        setattr(holder, name, own)
    subprocess._USE_POSIX_SPAWN = True
    assert not door.is_only_door(), "posix_spawn"
    subprocess._USE_POSIX_SPAWN = False
    original, sys.audit = sys.audit, lambda *_arguments: None
    assert not door.is_only_door(), "no hook refuses"
    sys.audit = original
    assert door.is_only_door()


def main():
    wrapper, workspace, home = os.open(sys.argv[1], os.O_PATH), sys.argv[2], sys.argv[3]
    os.environ["OH_SECRET"] = os.environ["GATEPOST_SECRET"] = "no"
    os.mkdir("bin")
    with open("bin/link", "w") as script:
        script.write("#!/bin/sh\nexec cat /proc/self/status\n")
    os.chmod("bin/link", 0o755)
    number = plan(workspace)
    starter = f"/proc/self/fd/{wrapper}"
    words = [starter, "__confine", "--plan-fd", str(number), "--own-fd", str(wrapper), "--"]
    door.route_children(starter, words, [number, wrapper], os.fsencode(home))
    # Another program stands in its place now, as after an upgrade.
    os.rename(sys.argv[1], sys.argv[1] + "-old")
    with open(sys.argv[1], "w") as other:
        other.write("#!/bin/sh\necho replaced\n")
    os.chmod(sys.argv[1], 0o755)
    door.refuse_other_ways()
    check_children(home)
    check_other_ways()
    check_threads(int(sys.argv[5]))
    check_canary(int(sys.argv[5]))
    print("one door")


if __name__ == "__main__":
    main()
