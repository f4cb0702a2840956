"""Start-up module for the OpenHands Agent Server 1.40.0.

Imported by the server's own ``--extra-python-path`` and ``--import-modules`` flags before it reads its
configuration. It makes the process what the daemon relies on, then says so on the control descriptor. Any failure
here ends the process: a server that has not announced itself is never spoken to.

The environment names the descriptors, not their content:
  GATEPOST_LISTEN_FD   a listening TCP socket on 127.0.0.1 that the daemon bound
  GATEPOST_CONTROL_FD  one end of a Unix socket pair; the daemon holds the other
  GATEPOST_NONCE       a random word that the announcement repeats
  OPENHANDS_AGENT_SERVER_CONFIG_PATH=/dev/fd/N  the configuration, an unlinked file
and, where what this process starts is confined:
  GATEPOST_DOOR        as JSON: the "starter" of every process, its "words" before those of the program, the "descriptors"
                       that it needs, and the "prober" that tries the confinement
  GATEPOST_DOMAIN_FD   rules of the kernel's, for a thread of this process; without it such threads do nothing
  GATEPOST_AGENT_HOME  HOME of what this process starts
With GATEPOST_SPARE none of these but the first three are there: all come later, by the control descriptor.
"""

import json
import os
import socket
import sys
import threading

from gatepost_control import Control
from gatepost_door import (
    call_confined,
    confine_tools,
    is_only_door,
    probe,
    refuse_other_ways,
    route_children,
    withhold_from_terminals,
)
from gatepost_files import keep_files_whole
from gatepost_history import keep_waiting_calls
from gatepost_latch import install_latch, is_installed
from gatepost_process import (
    forbid_dumps,
    is_dumpable,
    listening_sockets,
    make_no_downloads,
    reap_adopted,
    refuse_other_listeners,
    take_descriptor,
)
from gatepost_reviewed import (
    drop_workspace_content,
    only_reviewed_conversations,
    only_reviewed_routes,
    workspace_content_dropped,
)

CONTRACT = "1.40.0"
MEASURES = ["listener", "dumpable", "listeners_refused", "ambient_plugins_dropped", "latch", "routes"]


def inspect_process(nonce):
    """What the daemon's canaries read: facts about this very process, taken now."""
    return {
        "nonce": nonce,
        "pid": os.getpid(),
        "dumpable": is_dumpable(),
        "listeners": listening_sockets(),
        "latch": is_installed(),
        "door": is_only_door(),
        "ambient_plugins": "dropped" if workspace_content_dropped() else "loaded",
    }


def serve_on(listener, config_number):
    """Make uvicorn serve on the inherited socket, whatever host and port it was told."""
    import uvicorn

    original_serve = uvicorn.Server.serve

    async def serve(self, sockets=None):
        # The configuration was read by now: the descriptor that carries the keys is closed before the first request.
        from openhands.agent_server.config import get_default_config

        get_default_config()
        os.environ.pop("OPENHANDS_AGENT_SERVER_CONFIG_PATH", None)
        if config_number is not None:
            os.close(config_number)
        if not self.config.loaded:
            self.config.load()
        self.config.loaded_app = only_reviewed_routes(self.config.loaded_app)
        await original_serve(self, sockets=[listener])

    uvicorn.Server.serve = serve


def main():
    forbid_dumps()
    make_no_downloads()
    if os.environ.pop("GATEPOST_SPARE", None):
        from gatepost_spare import wait_for_workspace

        refuse_other_listeners(int(os.environ["GATEPOST_LISTEN_FD"]))
        said = {"nonce": os.environ["GATEPOST_NONCE"], "pid": os.getpid(), "contract": CONTRACT}
        wait_for_workspace(int(os.environ["GATEPOST_CONTROL_FD"]), said)
    nonce = os.environ.pop("GATEPOST_NONCE")
    listen_number = take_descriptor("GATEPOST_LISTEN_FD")
    control_number = take_descriptor("GATEPOST_CONTROL_FD")
    prober = None
    confining = "GATEPOST_DOOR" in os.environ
    if confining:
        domain_number = take_descriptor("GATEPOST_DOMAIN_FD") if "GATEPOST_DOMAIN_FD" in os.environ else None
        door = json.loads(os.environ.pop("GATEPOST_DOOR"))
        prober = door["prober"]
        for number in door["descriptors"]:
            os.set_inheritable(number, False)
        agent_home = os.fsencode(os.environ.pop("GATEPOST_AGENT_HOME"))
    config_number = None
    path = os.environ.get("OPENHANDS_AGENT_SERVER_CONFIG_PATH", "")
    if path.startswith("/dev/fd/"):
        config_number = int(path.removeprefix("/dev/fd/"))
        os.set_inheritable(config_number, False)

    if confining:
        route_children(door["starter"], door["words"], door["descriptors"], agent_home)
        refuse_other_ways()
    listener = socket.socket(fileno=listen_number)
    control = Control(control_number, lambda: inspect_process(nonce), lambda targets: probe(prober, targets))
    refuse_other_listeners(listen_number)
    serve_on(listener, config_number)
    if confining:
        confine_tools(domain_number)
        withhold_from_terminals(agent_home)
    confined = (lambda function: call_confined(domain_number, function)) if confining else (lambda function: function())
    drop_workspace_content(confined)
    only_reviewed_conversations()
    install_latch(control)
    keep_waiting_calls()
    keep_files_whole()
    control.send(
        {
            "announce": {
                "nonce": nonce,
                "pid": os.getpid(),
                "contract": CONTRACT,
                "measures": MEASURES + (["door"] if confining else []),
            }
        }
    )
    threading.Thread(target=control.serve, name="gatepost-control", daemon=True).start()
    if sys.platform == "linux":
        threading.Thread(target=reap_adopted, name="gatepost-reaper", daemon=True).start()


main()
