//! Python.

use super::Task;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "python_modules",
        needs: &["python3"],
        script: r#"
same "$(python3 -c 'import ssl, json, threading, ctypes, hashlib; print(json.dumps([1]))')" "[1]"
"#,
    },
    Task {
        name: "python_venv",
        needs: &["python3"],
        script: r#"
python3 -m venv env
. env/bin/activate
same "$(python -c 'import sys; print(sys.prefix)')" "$PWD/env"
python -m pip --version
"#,
    },
    Task {
        name: "python_pip_install_of_a_local_package",
        needs: &["python3"],
        script: r#"
mkdir -p package/greeting
echo 'def hello(): print("hello")' > package/greeting/__init__.py
cat > package/pyproject.toml <<'END'
[project]
name = "greeting"
version = "1.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
END
cat > package/backend.py <<'END'
import zipfile
def build_wheel(directory, settings=None, metadata=None):
    name, info = "greeting-1.0-py3-none-any.whl", "greeting-1.0.dist-info/"
    with zipfile.ZipFile(directory + "/" + name, "w") as wheel:
        wheel.write("greeting/__init__.py")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: own\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "")
    return name
END
python3 -m venv env
env/bin/pip install -q --no-index --disable-pip-version-check ./package
same "$(cd / && "$OLDPWD"/env/bin/python -c 'import greeting; greeting.hello()')" hello
"#,
    },
    Task {
        name: "python_multiprocessing",
        needs: &["python3"],
        script: r#"
cat > many.py <<'END'
import multiprocessing, sys
def double(x): return 2 * x
if __name__ == '__main__':
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool: print(pool.map(double, [1, 2]))
END
same "$(python3 many.py fork)" "[2, 4]"
"#,
    },
    Task {
        name: "python_spawn_and_forkserver",
        needs: &["python3"],
        script: r#"
cat > many.py <<'END'
import multiprocessing
def double(x): return 2 * x
if __name__ == '__main__':
    for way in ('spawn', 'forkserver'):
        with multiprocessing.get_context(way).Pool(2) as pool: print(pool.map(double, [1, 2]))
END
same "$(python3 many.py)" "[2, 4]
[2, 4]"
"#,
    },
    Task {
        name: "python_shared_memory",
        needs: &["python3"],
        script: r#"
cat > shared.py <<'END'
from multiprocessing import Lock, Process, shared_memory
def fill(name):
    memory = shared_memory.SharedMemory(name=name); memory.buf[0] = 42; memory.close()
if __name__ == '__main__':
    memory = shared_memory.SharedMemory(create=True, size=8)
    with Lock():
        child = Process(target=fill, args=(memory.name,)); child.start(); child.join()
    print(memory.buf[0]); memory.close(); memory.unlink()
END
same "$(python3 shared.py)" 42
"#,
    },
    Task {
        name: "python_subprocesses",
        needs: &["python3"],
        script: r#"
cat > child.py <<'END'
import asyncio, subprocess
print(subprocess.run(['sh', '-c', 'echo one'], capture_output=True, text=True, check=True).stdout, end='')
async def main():
    child = await asyncio.create_subprocess_exec('sh', '-c', 'echo two', stdout=asyncio.subprocess.PIPE)
    print((await child.communicate())[0].decode(), end='')
asyncio.run(main())
END
same "$(python3 child.py)" "one
two"
"#,
    },
    Task {
        name: "python_unittest",
        needs: &["python3"],
        script: r#"
cat > test_sum.py <<'END'
import unittest
class Sum(unittest.TestCase):
    def test_sum(self): self.assertEqual(sum([1, 2]), 3)
END
python3 -m unittest -v 2> said
grep -q '^OK$' said
ls __pycache__/test_sum.*.pyc
"#,
    },
    Task {
        name: "sqlite_wal",
        needs: &["python3"],
        script: r#"
cat > base.py <<'END'
import sqlite3
c = sqlite3.connect('a.db')
print(c.execute('pragma journal_mode=wal').fetchone()[0])
c.execute('create table t(a)'); c.execute('insert into t values (7)'); c.commit()
print(sqlite3.connect('a.db').execute('select a from t').fetchone()[0])
END
same "$(python3 base.py)" "wal
7"
"#,
    },
    Task {
        name: "file_watching",
        needs: &["python3"],
        script: r#"
cat > watch.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(0)
assert watch >= 0 and libc.inotify_add_watch(watch, b'.', 0x100) >= 0, os.strerror(ctypes.get_errno())
open('made', 'w').close()
print(os.read(watch, 4096)[16:].rstrip(b'\0').decode())
END
same "$(python3 watch.py)" made
"#,
    },
    Task {
        name: "memory_mapping",
        needs: &["python3"],
        script: r#"
cat > map.py <<'END'
import mmap
with open('mapped', 'wb') as file: file.truncate(1 << 20)
with open('mapped', 'r+b') as file, mmap.mmap(file.fileno(), 0) as memory: memory[-4:] = b'last'
with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory: memory[:4] = b'code'
print(open('mapped', 'rb').read()[-4:].decode())
END
same "$(python3 map.py)" last
"#,
    },
];
