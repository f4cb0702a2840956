# What the tasks share: any failing command ends one.
set -euo pipefail
same() { [[ "$1" == "$2" ]] || { printf 'this is %q, not %q\n' "$1" "$2" >&2; return 1; }; }
soon() { for _ in {1..200}; do if "$@"; then return 0; fi; sleep 0.05; done; echo "not within 10 s: $*" >&2; return 1; }
task=$1
set --
. "$task"
