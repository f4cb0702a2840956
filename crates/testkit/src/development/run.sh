# Runs every task beside it, each in a new directory, and leaves its exit code and what it said.
set -u
cd "$(dirname "$0")"
for task in tasks/*.sh; do
    name=$(basename "$task" .sh)
    mkdir -p "work/$name"
    # Its process group stays the terminal's, so that it may read from it.
    (cd "work/$name" && exec timeout --foreground -k 5 60 bash ../../prelude.sh "../../$task") \
        < /dev/null > "results/$name.said" 2>&1
    echo $? > "results/$name.part" && mv "results/$name.part" "results/$name.code"
    echo "$name $(cat "results/$name.code")"
done
touch over
