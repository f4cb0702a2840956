"""A server that is killed while it writes a conversation's file, with the start-up module's way of writing."""

import asyncio
import contextlib
import os
import pathlib
import signal
import sys
import types

import gatepost_files
from openhands.agent_server.event_service import EventService
from openhands.sdk.conversation.event_store import EventLog
from openhands.sdk.io import LocalFileStore

gatepost_files.keep_files_whole()
root = pathlib.Path(sys.argv[1])


def write_file(text):
    LocalFileStore(str(root)).write("events/event-00000-aaaaaaaa.json", text)


def write_meta(text):
    stored = types.SimpleNamespace(model_dump_json=lambda context: text)
    service = types.SimpleNamespace(
        conversation_dir=root, stored=stored, cipher=None, _write_guard=contextlib.nullcontext
    )
    asyncio.run(EventService.save_meta(service))


def killed_in_between(write):
    child = os.fork()
    if child == 0:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        write("new")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


for write, path in [(write_file, root / "events/event-00000-aaaaaaaa.json"), (write_meta, root / "meta.json")]:
    write("old")
    assert killed_in_between(write), "it was written in another way"
    assert path.read_text() == "old", path.read_text()
    write("newer")
    assert path.read_text() == "newer" and not list(path.parent.glob(".*.new")), list(path.parent.iterdir())

assert killed_in_between(write_file)
assert EventLog(LocalFileStore(str(root)))._count_events_on_disk() == 1, "what is half written counts as an event"
print("whole")
