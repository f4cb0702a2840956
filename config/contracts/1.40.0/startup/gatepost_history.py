"""What the model is shown of the conversation: a call that waited while the server loaded it is not lost."""


def keep_waiting_calls():
    """Show the model its own call together with the answer.

    When it loads a conversation, the server drops calls without an answer from the model's history, and later adds the
    answer without the call. Providers refuse such a history, so that the session could take no further turn.
    """
    from openhands.sdk.context.view import View
    from openhands.sdk.conversation.state import ConversationState

    original_rebuild = ConversationState.rebuild_view

    def rebuild_view(self):
        original_rebuild(self)
        if ConversationState.get_unmatched_actions(self.active_branch()):
            with self._view_lock:
                # Gathered anew, with everything in it, when it is next asked for.
                self._view, self._view_branch_leaf = View(), None

    ConversationState.rebuild_view = rebuild_view
