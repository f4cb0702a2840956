//! Files: made, moved, linked, locked, packed.

use super::Task;
use crate::daemon::ACCOUNT;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "file_locks",
        needs: &["flock"],
        script: r#"
for n in 1 2 3 4; do flock lock sh -c 'n=$(cat count 2> /dev/null || echo 0); sleep 0.02; echo $((n + 1)) > count' & done; wait
same "$(cat count)" 4
(flock -n 9 && ! flock -n lock true) 9> lock
"#,
    },
    Task {
        name: "temporary_files",
        needs: &[],
        script: r#"
file=$(mktemp)
directory=$(mktemp -d)
echo a > "$file"
touch "$directory/b"
[[ $file == "$TMPDIR"/* && $directory == "$TMPDIR"/* ]]
rm -r "$file" "$directory"
"#,
    },
    Task {
        name: "shared_memory_files",
        needs: &[],
        script: r#"
name=/dev/shm/development-$$
echo shared > $name
same "$(cat $name)" shared
rm $name
"#,
    },
    Task {
        name: "caches_at_home",
        needs: &[],
        script: r#"
mkdir -p "$HOME/.cache/development"
echo cached > "$HOME/.cache/development/$$"
same "$(cat ~/.cache/development/$$)" cached
rm -r ~/.cache/development
"#,
    },
    Task {
        name: "tar_and_compression",
        needs: &["tar", "gzip"],
        script: r#"
mkdir -p tree/below
echo a > tree/below/file
ln -s file tree/below/link
tar czf tree.tgz tree
rm -r tree
tar xzf tree.tgz
same "$(cat tree/below/link)" a
echo b > b
gzip b
gunzip b.gz
same "$(cat b)" b
"#,
    },
    Task {
        name: "zip_archives",
        needs: &["zip", "unzip"],
        script: r#"
mkdir tree
echo a > tree/file
zip -qr tree.zip tree
rm -r tree
unzip -q tree.zip
same "$(cat tree/file)" a
"#,
    },
    Task {
        name: "find_xargs_grep_sed_and_awk",
        needs: &["find", "xargs", "grep", "sed", "awk"],
        script: r#"
mkdir -p a/b
for n in 1 2 3 4; do echo "line $n" > "a/b/file $n.txt"; done
same "$(find a -name '*.txt' -print0 | xargs -0 -P 2 grep -h line | sort | sed -n '2,3p' | awk '{ s += $2 } END { print s }')" 5
find a -type f -exec sed -i s/line/row/ {} +
same "$(grep -rl row a | wc -l)" 4
find a -name '*3.txt' -delete
"#,
    },
    Task {
        name: "patches",
        needs: &["patch", "diff"],
        script: r#"
printf 'one\ntwo\n' > a
printf 'one\n2\n' > b
diff -u a b > change || true
patch -s a change
cmp a b
patch -s -R a change
same "$(tail -n 1 a)" two
"#,
    },
    Task {
        name: "renames_across_directories",
        needs: &[],
        script: r#"
mkdir -p a/deep b
echo x > a/deep/file
mv a/deep/file b/file
mv a/deep b/deep
test -d b/deep
same "$(cat b/file)" x
mv b c
same "$(cat c/file)" x
echo y > "$TMPDIR/new"
mv "$TMPDIR/new" c/file
same "$(cat c/file)" y
"#,
    },
    Task {
        name: "links_in_the_workspace",
        needs: &[],
        script: r#"
mkdir a b
echo x > a/file
ln a/file b/hard
ln -s ../a/file b/soft
echo y >> b/soft
same "$(cat b/hard)" "x
y"
same "$(stat -c %h a/file)" 2
same "$(readlink -f b/soft)" "$PWD/a/file"
rm a/file
test -s b/hard
"#,
    },
    Task {
        name: "modes_and_scripts",
        needs: &[],
        script: r#"
printf '#!/bin/sh\necho ran $1\n' > tool
chmod +x tool
same "$(./tool once)" "ran once"
chmod 600 tool
test ! -x tool
touch -d @0 tool
same "$(stat -c '%a %Y' tool)" "600 0"
"#,
    },
    Task {
        name: "unicode_names",
        needs: &[],
        script: r#"
for name in 'grüße.txt' '文件' 'emoji 🦀' $'new\nline'; do echo "$name" > "$name" && same "$(cat "$name")" "$name"; done
same "$(find . -type f -print0 | tr -cd '\0' | wc -c)" 4
"#,
    },
    Task {
        name: "large_files",
        needs: &[],
        script: r#"
dd if=/dev/zero of=large bs=1M count=64 status=none
same "$(stat -c %s large)" 67108864
truncate -s 8G sparse
echo end >> sparse
same "$(tail -c 4 sparse)" end
fallocate -l 1M allocated
cp --reflink=auto large copy
cmp large copy
rm large sparse allocated copy
"#,
    },
    Task {
        name: "many_small_files",
        needs: &[],
        script: r#"
mkdir many
(cd many && seq 2000 | xargs touch)
same "$(ls many | wc -l)" 2000
cp -a many more
rm -r many more
"#,
    },
    Task {
        name: "checksums_and_encodings",
        needs: &["sha256sum", "base64"],
        script: r#"
echo hello > a
sha256sum a > sums
sha256sum --quiet -c sums
same "$(base64 < a | base64 -d)" hello
same "$(printf 'a\tb\n' | cut -f 2)" b
same "$(printf 'b\na\n' | sort | uniq | paste -sd,)" a,b
"#,
    },
    Task {
        name: "an_ssh_key",
        needs: &["ssh-keygen", ACCOUNT],
        script: r#"
ssh-keygen -q -t ed25519 -N '' -f key
grep -q '^ssh-ed25519 ' key.pub
ssh-keygen -l -f key
"#,
    },
    Task {
        name: "a_certificate",
        needs: &["openssl"],
        script: r#"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out certificate -subj /CN=localhost -days 1 2> /dev/null
same "$(openssl x509 -in certificate -noout -subject)" "subject=CN = localhost"
"#,
    },
];
