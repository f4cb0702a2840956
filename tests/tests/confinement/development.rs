//! Ordinary development, inside.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::stage::Stage;

fn has(stage: &Stage, program: &str) -> bool {
    let mut shell = stage.bare("/bin/sh");
    shell.args(["-c", &format!("command -v {program}")]).output().unwrap().status.success()
}

fn python(stage: &Stage, script: &str) -> String {
    stage.write("workspace/script.py", script);
    stage.says("python3 script.py")
}

#[test]
fn git_with_a_worktree_and_settings_at_home() {
    let stage = Stage::new();
    let script = "git init -q a && cd a && echo x > f && git add f && git commit -q -m one && git worktree add -q ../b \
                  && git -C ../b log --format='%an %s' && git status --short && git gc -q";
    assert_eq!(stage.says(script), "A one");
    // What is expected to fail.
    assert_ne!(stage.wrapped("/bin/sh", &["sh", "-c", "git config --global a.b c"]).output().status.code(), Some(0));
}

#[test]
fn shells_and_pipelines() {
    let stage = Stage::new();
    assert_eq!(stage.says("seq 1000 | sort -rn | head -n 1"), "1000");
    assert_eq!(stage.says("yes | head -n 1; echo \"${PIPESTATUS[0]}\""), "y\n141");
    assert_eq!(stage.says("diff <(echo a) <(echo a) && cat <<< b"), "b");
    assert_eq!(stage.says("echo a > \"$(mktemp)\" && ls \"$TMPDIR\" | wc -l"), "1");
    assert_eq!(stage.says("echo a > /dev/null && head -c 3 /dev/zero | wc -c && ls -d /usr"), "3\n/usr");
    assert_eq!(stage.says("sleep 300 & kill $! && wait $! ; echo $?"), "143");
    assert_eq!(stage.says("id -un root && test -r /etc/passwd && date -u -d @0 +%Y"), "root\n1970");
}

#[test]
fn what_goes_on_behind_the_shell() {
    let stage = Stage::new();
    let script = "nohup setsid sh -c 'echo done > later' > /dev/null 2>&1 & \
                  until test -s later; do sleep 0.05; done; cat later";
    assert_eq!(stage.says(script), "done");
}

#[test]
fn python_and_its_modules() {
    let stage = Stage::new();
    assert_eq!(stage.says("python3 -c 'import ssl, json, threading; print(json.dumps([1]))'"), "[1]");
    let sqlite = "import sqlite3\n\
        c = sqlite3.connect('a.db')\n\
        print(c.execute('pragma journal_mode=wal').fetchone()[0])\n\
        c.execute('create table t(a)'); c.execute('insert into t values (7)'); c.commit()\n\
        print(sqlite3.connect('a.db').execute('select a from t').fetchone()[0])\n";
    assert_eq!(python(&stage, sqlite), "wal\n7");
    let many = "import multiprocessing as m\n\
        from multiprocessing import shared_memory\n\
        def double(x): return 2 * x\n\
        if __name__ == '__main__':\n\
        \x20   for way in ('fork', 'spawn', 'forkserver'):\n\
        \x20       with m.get_context(way).Pool(2) as pool: print(way, pool.map(double, [1, 2]))\n\
        \x20   memory = shared_memory.SharedMemory(create=True, size=8)\n\
        \x20   memory.close(); memory.unlink()\n";
    assert_eq!(python(&stage, many), "fork [2, 4]\nspawn [2, 4]\nforkserver [2, 4]");
}

#[test]
fn sockets() {
    let stage = Stage::new();
    let script = "import os, socket, threading\n\
        def talk(family, address):\n\
        \x20   server = socket.socket(family); server.bind(address); server.listen()\n\
        \x20   client = socket.socket(family); client.connect(server.getsockname())\n\
        \x20   server.accept()[0].sendall(b'x'); print(client.recv(1))\n\
        talk(socket.AF_UNIX, os.environ['TMPDIR'] + '/s')\n\
        talk(socket.AF_UNIX, '\\0gatepost-test-' + str(os.getpid()))\n\
        talk(socket.AF_INET, ('127.0.0.1', 0))\n\
        print(socket.if_nameindex()[0][1])\n";
    assert_eq!(python(&stage, script), "b'x'\nb'x'\nb'x'\nlo");
}

#[test]
fn terminals() {
    let stage = Stage::new();
    let script = "import os, pty\n\
        pty.spawn(['sh', '-c', 'stty size < /dev/tty > /dev/null && echo on a terminal > /dev/tty; tty'])\n";
    assert!(python(&stage, script).starts_with("on a terminal\r\n/dev/pts/"));
    if has(&stage, "tmux") {
        let script = "tmux -L own -f /dev/null new-session -d 'tty > seen; echo in tmux >> seen' \
                      && until grep -q 'in tmux' seen 2> /dev/null; do sleep 0.05; done; cat seen";
        assert!(stage.says(script).starts_with("/dev/pts/"));
    }
}

#[test]
fn compilers_and_debuggers() {
    let stage = Stage::new();
    if has(&stage, "gcc") {
        stage.write("workspace/a.c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n");
        assert_eq!(stage.says("gcc -o a a.c && ./a"), "compiled");
        if has(&stage, "gdb") {
            let said = stage.says("gdb -nx -batch -ex 'break puts' -ex run -ex 'print 40 + 2' --args ./a 2>&1");
            assert!(said.contains("Breakpoint 1, ") && said.contains("$1 = 42"), "{said}");
        }
    }
    if has(&stage, "make") {
        stage.write("workspace/Makefile", "all:\n\t@echo made\n");
        assert_eq!(stage.says("make"), "made");
    }
    if has(&stage, "strace") {
        assert_eq!(stage.says("strace -f -o trace sh -c 'echo traced' && grep -c execve trace"), "traced\n1");
    }
}

#[test]
fn programs_in_the_workspace_and_in_a_toolchain_at_home() {
    let stage = Stage::new();
    let tools = stage.path("home/.local/bin");
    fs::create_dir_all(&tools).unwrap();
    for place in [tools.join("tool"), stage.path("workspace/tool")] {
        fs::write(&place, "#!/bin/sh\necho ran\n").unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(stage.says("./tool && \"$HOME/.local/bin/tool\""), "ran\nran");
}
