# spec 3, S7: compilers, interpreters, a database and version control, with their children, sampled at a high rate, work as they do natively.
. "$(dirname "$0")/lib.sh"
need perl python3 sqlite3 git make
echo 'int main() { return 3; }' >"$T/three.c"
STATUS=3 sampled sh -c "gcc -O2 -o three $T/three.c && ./three"
printf 'all: a b c d\n%%: FORCE\n\t@for i in 1 2 3 4 5; do /bin/true || echo dead; done; $(CC) -c -o $@.o %s; echo $@\nFORCE:\n' "$T/three.c" >"$T/Makefile"
sampled make -s -f "$T/Makefile"
sampled make -s -j2 -f "$T/Makefile" a
sampled python3 -c 'import subprocess as s, threading as t
r = []
def run(i): r.append(s.run(["sh", "-c", f"exit {i}"]).returncode)
a = [t.Thread(target=run, args=(i,)) for i in range(20)]
[x.start() for x in a]; [x.join() for x in a]; print(sorted(r))'
sampled perl -e 'for (1 .. 20) { my $x = `echo $_`; print $x; system("/bin/true") == 0 or print "dead: $?\n"; if (!(my $p = fork)) { exit $_ } wait; print $? >> 8, "\n" }'
sampled sqlite3 :memory: 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT sum(i * i % 7) FROM n'
sampled sh -c 'git init -q . && echo a >a && git add a && git -c user.name=a -c user.email=b commit -qm c && git status --short && git log --format=%s'
