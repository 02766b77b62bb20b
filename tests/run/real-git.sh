# Git: init, add, commit, branches, merge, log, gc, clone: the same objects.
. "$(dirname "$0")/lib.sh"
need git
cat >"$T/script" <<'B'
set -e
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@d GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
git init -q -b main repo; cd repo
for i in 1 2 3 4 5; do mkdir -p "d$i"; seq $((i * 100)) >"d$i/file"; git add .; git commit -q -m "commit $i"; done
git checkout -q -b side HEAD~2; echo side >side; git add side; git commit -q -m side
git checkout -q main; git merge -q -m merged side; git tag -a -m tagged v1
git log --format='%H %s' --graph --stat; git diff --stat HEAD~3; git grep -c 42; git status --short
git -c gc.auto=0 gc -q; git fsck --full; git count-objects -v | grep -v size; git bundle create -q ../bundle --all; cd ..
git clone -q repo copy; cd copy; git rev-parse HEAD; git blame d2/file | tail -n 1; git archive HEAD | sha256sum; git rebase -q HEAD~1 2>&1 | cat; git stash list
B
same bash "$T/script"
STATUS=128 same git status
