"""What of the server is left: the reviewed routes and conversations, and nothing that runs by merely lying about."""

import re

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


MAX_DRAINED_PARTS = 16


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
            # Within bounds, what came with it is read: closed over unread data, the connection is reset and the answer lost.
            for _part in range(MAX_DRAINED_PARTS):
                if not (await receive()).get("more_body"):
                    break
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"detail":"not in the reviewed contract"}'})

    return guarded


def drop_workspace_content(confined):
    """Nothing that merely lies in the workspace or HOME runs: plugins, hooks, agent definitions, skills' commands.

    What is still read there is read by ``confined``, which calls a function where it may open what the agent's commands may:
    a link in the workspace can lead anywhere.
    """
    from openhands.sdk.conversation.impl import local_conversation
    from openhands.sdk.skills import execute

    original_skills = local_conversation.load_available_skills
    original_memory = local_conversation.load_memory

    def no_plugins(*_arguments, **_named):
        return {}

    def no_agents(*_arguments, **_named):
        return None

    def no_hooks(*_arguments, **_named):
        raise RuntimeError("gatepost: hooks are not run")

    def plain_skills(*arguments, **named):
        skills = confined(lambda: original_skills(*arguments, **named))
        return {name: skill for name, skill in skills.items() if not skill.mcp_tools}

    def memory(*arguments, **named):
        return confined(lambda: original_memory(*arguments, **named))

    def no_mcp(*_arguments, **_named):
        return []

    def no_command(command, *_arguments, **_named):
        return f"[not run: {command}]"

    replaced = (
        (local_conversation, "load_available_plugins", no_plugins),
        (local_conversation, "register_file_agents", no_agents),
        (local_conversation, "create_hook_callback", no_hooks),
        (local_conversation, "load_available_skills", plain_skills),
        (local_conversation, "load_memory", memory),
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

    names = ("load_available_plugins", "register_file_agents", "create_hook_callback", "load_available_skills", "load_memory")
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
