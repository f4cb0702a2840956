"""Start-up module for the OpenHands Agent Server 1.40.0.

Imported by the server's own ``--extra-python-path`` and ``--import-modules`` flags before it reads its
configuration. It makes the process what the daemon relies on, then says so on the control descriptor. Any failure
here ends the process: a server that has not announced itself is never spoken to.

The environment names the descriptors, not their content:
  GATEPOST_LISTEN_FD   a listening TCP socket on 127.0.0.1 that the daemon bound
  GATEPOST_CONTROL_FD  one end of a Unix socket pair; the daemon holds the other
  GATEPOST_NONCE       a random word that the announcement repeats
  OPENHANDS_AGENT_SERVER_CONFIG_PATH=/dev/fd/N  the configuration, an unlinked file

Control protocol: one JSON object a line, both ways.
  out  {"announce": {"nonce", "pid", "contract", "measures": [...]}}
  in   {"id": n, "grant": [event ids]}    -> {"id": n, "granted": count}
  in   {"id": n, "revoke": [event ids]}   -> {"id": n, "revoked": count}   of those that were not used
  in   {"id": n, "settled": conversation} -> {"id": n, "settled": true | false}   no run of it is under way or ending
  in   {"id": n, "inspect": true}         -> {"id": n, "inspect": {...}}
  out  {"held": {"conversation_id", "event_ids"}}   an action without a grant was stopped
End of file on the control descriptor means the daemon is gone: the process ends.
"""

import ctypes
import json
import os
import re
import signal
import socket
import sys
import threading
import time

CONTRACT = "1.40.0"
PR_SET_DUMPABLE = 4
PR_GET_DUMPABLE = 3
MAX_LINE_BYTES = 1 << 20
REAP_INTERVAL_SECONDS = 30


def _take_descriptor(variable):
    number = int(os.environ.pop(variable))
    os.set_inheritable(number, False)
    return number


class Control:
    """The daemon's private channel: grants come in, reports go out."""

    def __init__(self, number, nonce):
        self._socket = socket.socket(fileno=number)
        self._nonce = nonce
        self._write_lock = threading.Lock()
        self._grants = set()
        self._grant_lock = threading.Lock()
        self._services = {}

    def register(self, service):
        """Remember the service of a main conversation; sub-agents have none."""
        self._services[str(service.stored.id)] = service

    def is_main(self, conversation):
        return str(conversation.id) in self._services

    def _settled(self, conversation_id):
        # The status turns terminal before the run's task ends, and an accept sent in between does nothing.
        service = self._services.get(conversation_id)
        task = service._run_task if service is not None else None
        return task is None or task.done()

    def send(self, message):
        data = json.dumps(message).encode() + b"\n"
        with self._write_lock:
            self._socket.sendall(data)

    def take_grants(self, event_ids):
        """True when every id was granted; each grant is used up by this call."""
        wanted = set(event_ids)
        with self._grant_lock:
            if not wanted <= self._grants:
                return False
            self._grants -= wanted
            return True

    def serve(self):
        """Answer the daemon until it closes its end, then end this process."""
        try:
            with self._socket.makefile("rb") as lines:
                while True:
                    line = lines.readline(MAX_LINE_BYTES)
                    if not line.endswith(b"\n"):
                        break
                    self._answer(json.loads(line))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)

    def _answer(self, request):
        reply = {"id": request["id"]}
        if "grant" in request:
            with self._grant_lock:
                self._grants |= {str(event_id) for event_id in request["grant"]}
            reply["granted"] = len(request["grant"])
        elif "revoke" in request:
            with self._grant_lock:
                unused = self._grants & {str(event_id) for event_id in request["revoke"]}
                self._grants -= unused
            reply["revoked"] = len(unused)
        elif "settled" in request:
            reply["settled"] = self._settled(request["settled"])
        elif request.get("inspect"):
            reply["inspect"] = inspect_process(self._nonce)
        else:
            reply["error"] = "unknown request"
        self.send(reply)


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


def inspect_process(nonce):
    """What the daemon's canaries read: facts about this very process, taken now."""
    from openhands.sdk.agent.agent import Agent

    return {
        "nonce": nonce,
        "pid": os.getpid(),
        "dumpable": ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0),
        "listeners": listening_sockets(),
        "latch": all(
            getattr(getattr(Agent, name), "gatepost_latch", False)
            for name in ("_execute_actions", "_aexecute_actions")
        ),
        "ambient_plugins": "dropped" if workspace_content_dropped() else "loaded",
    }


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


# The routes of the reviewed contract, word for word those of contract.json; any other answers 404, whoever asks.
ROUTES = (
    "GET /server_info",
    "POST /api/init",
    "GET /api/conversations/count",
    "POST /api/conversations",
    "GET /api/conversations/{}",
    "PATCH /api/conversations/{}",
    "DELETE /api/conversations/{}",
    "POST /api/conversations/{}/confirmation_policy",
    "POST /api/conversations/{}/condense",
    "POST /api/conversations/{}/events",
    "GET /api/conversations/{}/events/search",
    "POST /api/conversations/{}/events/respond_to_confirmation",
    "POST /api/conversations/{}/fork",
    "POST /api/conversations/{}/interrupt",
    "POST /api/conversations/{}/navigate",
    "POST /api/conversations/{}/run",
    "POST /api/conversations/{}/switch_profile",
    "GET /api/agent-profiles/{}",
    "POST /api/agent-profiles/{}",
    "POST /api/agent-profiles/{}/materialize",
    "GET /api/profiles/{}",
    "POST /api/profiles/{}",
    "GET /sockets/events/{}",
)


def route_pattern(route):
    """A conversation goes by its canonical id alone: other words there are other routes of the server."""
    of_conversation = "/conversations/{}" in route or "/events/{}" in route
    value = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}" if of_conversation else "[A-Za-z0-9_-]{1,64}"
    return re.compile(re.escape(route).replace(re.escape("{}"), value))


def only_reviewed_routes(application):
    """Wrap the server's application: what starts commands, installs, uploads or runs git over HTTP is not reachable."""
    patterns = {route_pattern(route) for route in ROUTES}

    async def guarded(scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            await application(scope, receive, send)
            return
        asked = f"{scope.get('method', 'GET')} {scope['path']}"
        if any(pattern.fullmatch(asked) for pattern in patterns):
            await application(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"detail":"not in the reviewed contract"}'})

    return guarded


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


def drop_workspace_content():
    """Nothing that merely lies in the workspace or HOME runs: plugins, hooks, agent definitions, skills' commands."""
    from openhands.sdk.conversation.impl import local_conversation
    from openhands.sdk.skills import execute

    original_skills = local_conversation.load_available_skills

    def no_plugins(*_arguments, **_named):
        return {}

    def no_agents(*_arguments, **_named):
        return None

    def no_hooks(*_arguments, **_named):
        raise RuntimeError("gatepost: hooks are not run")

    def plain_skills(*arguments, **named):
        return {name: skill for name, skill in original_skills(*arguments, **named).items() if not skill.mcp_tools}

    def no_mcp(*_arguments, **_named):
        return []

    def no_command(command, *_arguments, **_named):
        return f"[not run: {command}]"

    replaced = (
        (local_conversation, "load_available_plugins", no_plugins),
        (local_conversation, "register_file_agents", no_agents),
        (local_conversation, "create_hook_callback", no_hooks),
        (local_conversation, "load_available_skills", plain_skills),
        (local_conversation.LocalConversation, "_runtime_mcp_tools", no_mcp),
        (execute, "_execute_inline_command", no_command),
    )
    for module, name, function in replaced:
        getattr(module, name)  # a version without it is not the reviewed one
        function.gatepost_dropped = True
        setattr(module, name, function)


def workspace_content_dropped():
    from openhands.sdk.conversation.impl import local_conversation
    from openhands.sdk.skills import execute

    names = ("load_available_plugins", "register_file_agents", "create_hook_callback", "load_available_skills")
    functions = [getattr(local_conversation, name) for name in names]
    functions += [local_conversation.LocalConversation._runtime_mcp_tools, execute._execute_inline_command]
    return all(getattr(function, "gatepost_dropped", False) for function in functions)


# What the daemon sends to create a conversation, and all that anybody may send: a request can also bring hooks, plugins,
# modules to import, an agent of its own, or have git check a worktree out, each of which runs commands by itself.
CREATION_FIELDS = {"conversation_id", "workspace", "agent_profile_id", "confirmation_policy", "autotitle"}


def only_reviewed_conversations():
    """A conversation is launched from a stored profile and brings nothing along; the latch guards its agent."""
    from fastapi import HTTPException
    from openhands.agent_server.conversation_service import ConversationService
    from openhands.agent_server.event_service import EventService
    from openhands.sdk.agent.agent import Agent

    original_create = ConversationService._start_conversation
    original_start = EventService.start

    async def create(self, request):
        brought = request.model_fields_set - CREATION_FIELDS
        if brought:
            raise HTTPException(422, f"not in the reviewed contract: {', '.join(sorted(brought))}")
        return await original_create(self, request)

    async def start(self):
        # An agent of another kind runs commands past the latch, and a tool's parameters can name a program.
        agent = self.stored.agent
        if type(agent) is not Agent or any(tool.params for tool in agent.tools):
            raise HTTPException(422, "only the server's own agent with plain tools is in the reviewed contract")
        await original_start(self)

    ConversationService._start_conversation = create
    EventService.start = start


def install_latch(control):
    """Run an action only when its event id was granted, once; hold the whole batch otherwise."""
    from openhands.agent_server.event_service import EventService
    from openhands.sdk.agent.agent import Agent
    from openhands.sdk.conversation.state import ConversationExecutionStatus
    from openhands.sdk.tool.builtins import FinishAction, ThinkAction

    original_start = EventService.start
    original_execute = Agent._execute_actions
    original_aexecute = Agent._aexecute_actions

    async def start(self):
        control.register(self)
        return await original_start(self)

    def may_run(conversation, action_events):
        if len(action_events) == 1 and isinstance(action_events[0].action, (FinishAction, ThinkAction)):
            return True
        event_ids = [event.id for event in action_events]
        if control.take_grants(event_ids):
            return True
        control.send({"held": {"conversation_id": str(conversation.id), "event_ids": event_ids}})
        if not control.is_main(conversation):
            # A sub-agent's runner would answer the confirmation by itself and spin.
            raise RuntimeError("gatepost: an action of a sub-agent was not approved")
        conversation.state.execution_status = ConversationExecutionStatus.WAITING_FOR_CONFIRMATION
        return False

    def execute(self, conversation, action_events, on_event):
        if may_run(conversation, action_events):
            original_execute(self, conversation, action_events, on_event)

    async def aexecute(self, conversation, action_events, on_event):
        if may_run(conversation, action_events):
            await original_aexecute(self, conversation, action_events, on_event)

    execute.gatepost_latch = True
    aexecute.gatepost_latch = True
    EventService.start = start
    Agent._execute_actions = execute
    Agent._aexecute_actions = aexecute


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


def main():
    nonce = os.environ.pop("GATEPOST_NONCE")
    listen_number = _take_descriptor("GATEPOST_LISTEN_FD")
    control_number = _take_descriptor("GATEPOST_CONTROL_FD")
    config_number = None
    path = os.environ.get("OPENHANDS_AGENT_SERVER_CONFIG_PATH", "")
    if path.startswith("/dev/fd/"):
        config_number = int(path.removeprefix("/dev/fd/"))
        os.set_inheritable(config_number, False)

    if sys.platform == "linux" and ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE was refused")
    listener = socket.socket(fileno=listen_number)
    control = Control(control_number, nonce)
    refuse_other_listeners(listen_number)
    serve_on(listener, config_number)
    drop_workspace_content()
    only_reviewed_conversations()
    install_latch(control)
    control.send(
        {
            "announce": {
                "nonce": nonce,
                "pid": os.getpid(),
                "contract": CONTRACT,
                "measures": ["listener", "dumpable", "listeners_refused", "ambient_plugins_dropped", "latch", "routes"],
            }
        }
    )
    threading.Thread(target=control.serve, name="gatepost-control", daemon=True).start()
    if sys.platform == "linux":
        threading.Thread(target=reap_adopted, name="gatepost-reaper", daemon=True).start()


main()
