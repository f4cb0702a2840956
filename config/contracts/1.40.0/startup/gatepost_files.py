"""What the server keeps of a conversation: each file is whole or as it was before, whenever the process is killed."""

import os


def write_whole(path, text):
    """Write beside the file and then take its place; killed in between, the old file stands."""
    directory, name = os.path.split(path)
    # No name that the server takes for an event; the next write of this file begins it anew.
    beside = os.path.join(directory, f".{name}.new")
    with open(beside, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(beside, path)


def keep_files_whole():
    """Never write a conversation's file in place.

    The server empties a file and then fills it. Killed in between, it never reads the conversation again: it leaves out what
    it cannot parse, and answers that there is no such conversation.
    """
    from openhands.agent_server.event_service import EventService
    from openhands.sdk.io import LocalFileStore

    original_write = LocalFileStore.write

    def write(self, path, contents):
        if not isinstance(contents, str):
            original_write(self, path, contents)
            return
        full_path = self.get_full_path(path)
        os.makedirs(os.path.dirname(full_path), exist_ok=True)
        write_whole(full_path, contents)
        self.cache[full_path] = contents

    async def save_meta(self):
        with self._write_guard():
            text = self.stored.model_dump_json(context={"cipher": self.cipher})
            write_whole(os.fspath(self.conversation_dir / "meta.json"), text)

    LocalFileStore.write = write
    EventService.save_meta = save_meta
