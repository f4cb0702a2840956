//! Rust.

use super::Task;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "rustc_program",
        needs: &["rustc", "cc"],
        script: r#"
echo 'fn main() { println!("{}", (1..=4).product::<u32>()); }' > a.rs
rustc a.rs
same "$(./a)" 24
"#,
    },
    Task {
        name: "cargo_new_build_and_run",
        needs: &["cargo", "cc"],
        script: r#"
cargo new --quiet greeting
cd greeting
cargo build --offline
test -x target/debug/greeting
same "$(cargo run --quiet --offline)" "Hello, world!"
"#,
    },
    Task {
        name: "cargo_test",
        needs: &["cargo", "cc"],
        script: r#"
cargo new --quiet --lib sums
cd sums
cargo test --offline > ../said
grep -q 'test result: ok. 1 passed' ../said
"#,
    },
    Task {
        name: "cargo_incremental_with_a_build_script_and_a_dependency",
        needs: &["cargo", "cc"],
        script: r#"
export CARGO_INCREMENTAL=1
cargo new --quiet --lib part
echo 'pub fn word() -> &'"'static"' str { "one" }' > part/src/lib.rs
cargo new --quiet app
cd app
cargo add --quiet --offline --path ../part
echo 'fn main() { println!("cargo::rustc-env=BUILT=by-script"); }' > build.rs
echo 'fn main() { println!("{} {}", part::word(), env!("BUILT")); }' > src/main.rs
same "$(cargo run --quiet --offline)" "one by-script"
ls -d target/debug/incremental/app-*
sed -i s/one/two/ ../part/src/lib.rs
same "$(cargo run --quiet --offline)" "two by-script"
"#,
    },
];
