"""The digests that lift the block for whatever lies in directories: ``reviewed.py DIRECTORY...``, as a JSON list."""

import hashlib
import json
import os
import sys

LOOKED_AT = (".openhands", ".agents", ".plugin")


def digest(path, data):
    facts = {"path": path, "sha256": hashlib.sha256(data).hexdigest()}
    return hashlib.sha256(json.dumps(facts, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


def main():
    found = []
    for top in sys.argv[1:]:
        for below in LOOKED_AT:
            for directory, _, names in os.walk(os.path.join(top, below)):
                for name in names:
                    path = os.path.join(directory, name)
                    with open(path, "rb") as file:
                        found.append(digest(os.path.relpath(path, top), file.read()))
    print(json.dumps(found))


main()
