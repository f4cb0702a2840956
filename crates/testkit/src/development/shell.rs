//! What a shell does: pipelines, jobs, signals.

use super::Task;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "pipelines",
        needs: &[],
        script: r#"
same "$(seq 1000 | sort -rn | head -n 1)" 1000
set +o pipefail
same "$(yes | head -n 1; echo "${PIPESTATUS[0]}")" "y
141"
diff <(echo a) <(echo a)
same "$(cat <<< b)" b
"#,
    },
    Task {
        name: "background_jobs",
        needs: &[],
        script: r#"
(sleep 0.1; echo one > one) & (echo two > two) & wait
same "$(cat one two)" "one
two"
"#,
    },
    Task {
        name: "job_control",
        needs: &[],
        script: r#"
cat > jobs.sh <<'END'
set -m
sleep 60 &
kill -STOP %1; sleep 0.2; jobs | grep -c Stopped
bg %1 > /dev/null; sleep 0.2; jobs | grep -c Running
kill %1; wait %1; echo $?
END
same "$(bash jobs.sh 2> /dev/null)" "1
1
143"
"#,
    },
    Task {
        name: "signals_to_own_children",
        needs: &[],
        script: r#"
bash -c 'trap "echo caught > caught; exit 7" USR1; touch ready; while :; do sleep 0.05; done' & child=$!
soon test -e ready
kill -USR1 $child
code=0; wait $child || code=$?; same $code 7
same "$(cat caught)" caught
sleep 60 & kill -KILL $!; code=0; wait $! || code=$?; same $code 137
setsid sleep 60 & group=$!; soon kill -0 -$group 2> /dev/null
kill -- -$group
"#,
    },
    Task {
        name: "timeouts",
        needs: &[],
        script: r#"
code=0; timeout 0.2 sleep 60 || code=$?; same $code 124
nice -n 5 true
(ulimit -n 64 && same "$(ulimit -n)" 64)
"#,
    },
    Task {
        name: "what_goes_on_behind_the_shell",
        needs: &[],
        script: r#"
nohup setsid sh -c 'sleep 0.1; echo done > later' > /dev/null 2>&1 &
soon test -s later
same "$(cat later)" done
"#,
    },
    Task {
        name: "named_pipes_and_coprocesses",
        needs: &[],
        script: r#"
mkfifo pipe
(echo through > pipe) & same "$(cat pipe)" through
coproc bc_like { read -r a b; echo $((a + b)); }
echo 40 2 >&"${bc_like[1]}"
read -r sum <&"${bc_like[0]}"
same "$sum" 42
"#,
    },
    Task {
        name: "users_times_and_devices",
        needs: &[],
        script: r#"
same "$(id -un root)" root
same "$(date -u -d @0 +%Y)" 1970
test -r /etc/passwd
echo a > /dev/null
same "$(head -c 3 /dev/zero | wc -c)" 3
same "$(head -c 8 /dev/urandom | wc -c)" 8
same "$(nproc | grep -c '^[1-9]')" 1
ps -o pid= -p $$ > /dev/null
uname -r
df . > /dev/null
"#,
    },
    Task {
        name: "long_output",
        needs: &[],
        script: r#"
seq 1 200000 | tee numbers | tail -n 1 | grep -qx 200000
same "$(wc -l < numbers)" 200000
cat numbers
same "$(sha256sum < numbers | cut -c1-8)" "$(seq 1 200000 | sha256sum | cut -c1-8)"
"#,
    },
    Task {
        name: "perl_one_liner",
        needs: &["perl"],
        script: r#"
same "$(echo hello | perl -pe 's/l+/L/; $_ = reverse(uc) if 0')" heLo
"#,
    },
];
