"""The daemon's private channel: grants come in, reports go out.

Control protocol: one JSON object a line, both ways.
  out  {"announce": {"nonce", "pid", "contract", "measures": [...]}}
  in   {"id": n, "grant": [event ids]}    -> {"id": n, "granted": count}
  in   {"id": n, "revoke": [event ids]}   -> {"id": n, "revoked": count}   of those that were not used
  in   {"id": n, "settled": conversation} -> {"id": n, "settled": true | false}   no run of it is under way or ending
  in   {"id": n, "log_ends": [conversations]} -> {"id": n, "log_ends": [event id | null, ...]}   the last event of each log
  in   {"id": n, "inspect": true}         -> {"id": n, "inspect": {...}}
  in   {"id": n, "probe": targets}        -> {"id": n, "probe": text}   what a process said that tried the confinement
  out  {"held": {"conversation_id", "event_ids"}}   an action without a grant was stopped
End of file on the control descriptor means the daemon is gone: the process ends.
"""

import json
import os
import signal
import socket
import threading

MAX_LINE_BYTES = 1 << 20


class Control:
    """The daemon's private channel: grants come in, reports go out."""

    def __init__(self, number, inspect, probe):
        self._socket = socket.socket(fileno=number)
        self._inspect = inspect
        self._probe = probe
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

    def _log_end(self, conversation_id):
        # The index that a read of the log goes by. Whatever hinders it is no reason to end: the daemon reads the log then.
        try:
            return self._services[conversation_id]._conversation._state.events.get_id(-1)
        except (AttributeError, IndexError, KeyError):
            return None

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
        elif "log_ends" in request:
            reply["log_ends"] = [self._log_end(conversation_id) for conversation_id in request["log_ends"]]
        elif request.get("inspect"):
            reply["inspect"] = self._inspect()
        elif "probe" in request:
            reply["probe"] = self._probe(request["probe"])
        else:
            reply["error"] = "unknown request"
        self.send(reply)
