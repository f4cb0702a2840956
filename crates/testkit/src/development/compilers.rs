//! C, build tools and debuggers.

use super::Task;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "c_program",
        needs: &["gcc"],
        script: r#"
printf '#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n' > a.c
gcc -O2 -pipe -o a a.c
same "$(./a)" compiled
"#,
    },
    Task {
        name: "c_threads",
        needs: &["gcc"],
        script: r#"
cat > a.c <<'END'
#include <pthread.h>
#include <stdio.h>
static int sum; static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *_) { pthread_mutex_lock(&lock); sum++; pthread_mutex_unlock(&lock); return 0; }
int main(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) if (pthread_create(&threads[i], 0, add, 0)) return 1;
  for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
  printf("%d\n", sum);
}
END
gcc -pthread -o a a.c
same "$(./a)" 8
"#,
    },
    Task {
        name: "c_static_library",
        needs: &["gcc", "ar"],
        script: r#"
echo 'int twice(int x) { return 2 * x; }' > twice.c
gcc -c twice.c
ar rcs libtwice.a twice.o
printf 'int twice(int);\nint main(void) { return twice(21); }\n' > a.c
gcc -o a a.c -L. -ltwice
code=0; ./a || code=$?; same $code 42
"#,
    },
    Task {
        name: "c_shared_library",
        needs: &["gcc"],
        script: r#"
echo 'int twice(int x) { return 2 * x; }' > twice.c
gcc -shared -fPIC -o libtwice.so twice.c
printf 'int twice(int);\nint main(void) { return twice(21); }\n' > a.c
gcc -o a a.c -L. -ltwice
code=0; LD_LIBRARY_PATH=$PWD ./a || code=$?; same $code 42
echo 'int twice(int x) { return 3 * x; }' > thrice.c
gcc -shared -fPIC -o thrice.so thrice.c
code=0; LD_LIBRARY_PATH=$PWD LD_PRELOAD=$PWD/thrice.so ./a || code=$?; same $code 63
"#,
    },
    Task {
        name: "cxx_program",
        needs: &["g++"],
        script: r#"
cat > a.cc <<'END'
#include <iostream>
#include <stdexcept>
int main() { try { throw std::runtime_error("caught"); } catch (const std::exception &e) { std::cout << e.what() << '\n'; } }
END
g++ -o a a.cc
same "$(./a)" caught
"#,
    },
    Task {
        name: "make_in_parallel",
        needs: &["make"],
        script: r#"
printf 'all: a b c\n\tcat $^ > all\n%%: %%.in\n\tcp $< $@\n' > Makefile
for name in a b c; do echo $name > $name.in; done
make -j4
same "$(cat all)" "a
b
c"
same "$(make -q a && echo made)" made
"#,
    },
    Task {
        name: "cmake_project",
        needs: &["cmake", "make", "gcc"],
        script: r#"
printf 'cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\n' > CMakeLists.txt
echo 'int main(void) { return 42; }' > a.c
cmake -S . -B build > /dev/null
cmake --build build > /dev/null
code=0; build/a || code=$?; same $code 42
"#,
    },
    Task {
        name: "strace_of_a_program",
        needs: &["strace"],
        script: r#"
strace -f -o trace sh -c '/bin/echo traced; :' | grep -qx traced
grep -q 'execve("/bin/echo"' trace
"#,
    },
    Task {
        name: "gdb_with_a_breakpoint",
        needs: &["gdb", "gcc"],
        script: r#"
printf '#include <stdio.h>\nint main(void) { puts("debugged"); return 0; }\n' > a.c
gcc -g -o a a.c
gdb -nx -batch -ex 'break puts' -ex run -ex 'print 40 + 2' -ex continue --args ./a > said 2>&1
grep -q 'Breakpoint 1, ' said
grep -q '^\$1 = 42$' said
grep -q '^debugged' said
"#,
    },
    Task {
        name: "gdb_attached_to_a_child",
        needs: &["gdb"],
        script: r#"
sleep 60 & child=$!
(gdb -nx -batch -p $child -ex 'print 40 + 2' > said 2>&1) || { kill $child; cat said; exit 1; }
kill $child
grep -q '^\$1 = 42$' said
"#,
    },
];
