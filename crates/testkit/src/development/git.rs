//! Version control.

use super::Task;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "git_commit",
        needs: &["git"],
        script: r#"
git init -q .
echo one > file
git add file
git commit -q -m first
same "$(git log --format='%an %s')" "Developer first"
same "$(git status --porcelain)" ""
"#,
    },
    Task {
        name: "git_branch_and_merge",
        needs: &["git"],
        script: r#"
git init -q -b main .
echo one > file
git add .
git commit -q -m first
git switch -q -c topic
echo two > other
git add .
git commit -q -m second
git switch -q main
echo three > third
git add .
git commit -q -m third
git merge -q --no-edit topic
same "$(cat other third)" "two
three"
git branch -q -d topic
"#,
    },
    Task {
        name: "git_rebase",
        needs: &["git"],
        script: r#"
git init -q -b main .
echo one > file
git add .
git commit -q -m first
git switch -q -c topic
echo a > a
git add .
git commit -q -m a
echo b > b
git add .
git commit -q -m b
git switch -q main
echo c > c
git add .
git commit -q -m c
git switch -q topic
git rebase -q main
same "$(git log --reverse --format=%s | tr '\n' ' ')" "first c a b "
GIT_SEQUENCE_EDITOR="sed -i '2s/pick/fixup/'" git rebase -q -i main
same "$(git log --reverse --format=%s | tr '\n' ' ')" "first c a "
"#,
    },
    Task {
        name: "git_worktree",
        needs: &["git"],
        script: r#"
git init -q a
cd a
echo x > file
git add .
git commit -q -m one
git worktree add -q ../b -b topic
cd ../b
echo y > file
git commit -q -a -m two
same "$(git -C ../a log --format=%s topic | head -n 1)" two
git -C ../a worktree remove ../b
test ! -e ../b
"#,
    },
    Task {
        name: "git_clone_push_and_pull",
        needs: &["git"],
        script: r#"
git init -q --bare -b main bare.git
git clone -q bare.git one 2> /dev/null
cd one
git switch -q -c main
echo 1 > file
git add .
git commit -q -m one
git push -q -u origin main
cd ..
git clone -q bare.git two
echo 2 > two/file
git -C two commit -q -a -m two
git -C two push -q
git -C one pull -q --ff-only
same "$(cat one/file)" 2
"#,
    },
    Task {
        name: "git_stash",
        needs: &["git"],
        script: r#"
git init -q .
echo one > file
git add .
git commit -q -m first
echo two > file
git stash -q
same "$(cat file)" one
git stash pop -q
same "$(cat file)" two
"#,
    },
    Task {
        name: "git_patches_by_mail",
        needs: &["git"],
        script: r#"
git init -q a
cd a
echo one > file
git add .
git commit -q -m first
git clone -q . ../b
echo two >> file
git commit -q -a -m second
git format-patch -q -1 --stdout > ../patch
git -C ../b am -q < ../patch
same "$(cat ../b/file)" "one
two"
"#,
    },
    Task {
        name: "git_hook",
        needs: &["git"],
        script: r#"
git init -q .
printf '#!/bin/sh\necho hooked > seen\n' > .git/hooks/pre-commit
chmod +x .git/hooks/pre-commit
echo one > file
git add file
git commit -q -m first
same "$(cat seen)" hooked
"#,
    },
    Task {
        name: "git_bisect",
        needs: &["git"],
        script: r#"
git init -q .
for n in 1 2 3 4 5 6 7 8; do
  echo $n > file
  git add .
  git commit -q -m $n
done
git bisect start HEAD HEAD~7 > /dev/null
git bisect run sh -c 'test "$(cat file)" -lt 5' > said
grep -q 'is the first bad commit' said
same "$(git log -1 --format=%s refs/bisect/bad)" 5
"#,
    },
    Task {
        name: "git_gc_and_fsck",
        needs: &["git"],
        script: r#"
git init -q .
for n in 1 2 3; do
  head -c 50000 /dev/urandom > file$n
  git add .
  git commit -q -m $n
done
git gc -q --aggressive --prune=now
ls .git/objects/pack/*.pack
git fsck --strict
"#,
    },
];
