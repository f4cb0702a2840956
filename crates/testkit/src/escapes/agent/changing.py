"""Attempts to change what binds the agent: files of the owner's and of gatepost's, namespaces, privileges, the kernel."""

import ctypes
import mmap
import os
import subprocess

from attempt import LET_IN, attempt, call, wait_for

IO_URING_SETUP = 425


def append(to, path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        file.write(text)
        if os.fstat(file.fileno()).st_dev != to.device:
            raise PermissionError("that name is another file's here")
    return LET_IN


@attempt
def owners_bashrc(to):
    return append(to, f"{to.home}/.bashrc", to.words["owners_bashrc"])


@attempt
def owners_authorized_keys(to):
    return append(to, f"{to.home}/.ssh/authorized_keys", to.words["owners_authorized_keys"])


@attempt
def owners_user_unit(to):
    return append(to, f"{to.home}/.config/systemd/user/{to.name}.service", to.words["owners_user_unit"])


@attempt
def mode_of_owners_file(to):
    os.chmod(f"{to.home}/.ssh/id_ed25519", 0o666)
    return LET_IN


@attempt
def gatepost_configuration(to):
    return append(to, to.configuration, f"# {to.words['gatepost_configuration']}\n")


@attempt
def installed_server(to):
    return append(to, to.installed_file, f"# {to.words['installed_server']}\n")


@attempt
def startup_module(to):
    return append(to, to.startup_file, f"# {to.words['startup_module']}\n")


@attempt
def wrapper_binary(to):
    os.chmod(to.wrapper, 0o777)
    return LET_IN


@attempt
def policy_files(to):
    for name in ("base_state.json", "meta.json"):
        path = os.path.join(to.policy_directory, name)
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("AlwaysConfirm", "NeverConfirm"))


def stands(words, *more):
    """Within a namespace of its own, until it sleeps there."""
    command = ["unshare", "--user", "--map-root-user", *more, *words]
    started = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)

    def is_over():
        if started.poll() is not None:
            raise PermissionError(started.stderr.read().strip())
        with open(f"/proc/{started.pid}/comm") as name:
            return name.read().strip() == "sleep"

    wait_for(is_over, "it is not known what became of the namespace")
    return LET_IN


@attempt
def user_namespace(to):
    return stands(["sleep", to.naps["user_namespace"]])


@attempt
def mount_namespace(to):
    script = f"mount -t tmpfs {to.words['mount_namespace']} /mnt && exec sleep {to.naps['mount_namespace']}"
    return stands(["sh", "-c", script], "--mount")


@attempt
def setuid_program(to):
    to.keep(subprocess.run([to.setuid, to.roots_file], capture_output=True, timeout=10).stdout)


@attempt
def io_uring(to):
    parameters = ctypes.create_string_buffer(120)
    ring = call(IO_URING_SETUP, 4, parameters)
    mmap.mmap(ring, 4096, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=0x10000000)
    # Held for whoever looks from outside.
    os.set_inheritable(ring, True)
    subprocess.Popen(["sleep", to.naps["io_uring"]], close_fds=False, start_new_session=True)
    return LET_IN
