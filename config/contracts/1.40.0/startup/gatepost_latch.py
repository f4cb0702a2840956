"""The latch: no action runs that the daemon has not granted."""


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


def is_installed():
    """Whether both ways to execute actions are latched."""
    from openhands.sdk.agent.agent import Agent

    names = ("_execute_actions", "_aexecute_actions")
    return all(getattr(getattr(Agent, name), "gatepost_latch", False) for name in names)
