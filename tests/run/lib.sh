# Sourced by every test here. A test makes small programs in $T and shows that they behave under Weir as they do
# natively: the native run is the oracle, and it must end as the test says (STATUS, by default 0).
#
#   compile NAME.c|cc|S|rs|go [flags] <<E   a program $T/NAME        (flags follow -O2)
#   library NAME.c|cc [flags] <<E           a shared library $T/libNAME.so
#   bare NAME <<E                           a static program $T/NAME of assembly, without libc: `function F` … `end F`, and a _start that does what
#                                           stands between `ten_times` and `again` ten times (2 instructions a time and 4 more), and exits
#   same CMD ARGS...         stdout, stderr and exit status under every tool of $TOOLS, and weir profile, equal the native ones
#   same_out, same_status    the same without stderr; the exit status alone
#   expect_fail STATUS PATTERN CMD...       Weir's own error: that status, and one line `weir: ...` matching PATTERN
#   refused STATUS PATTERN PROGRAM...       the same of a program that neither weir run nor weir profile can run; no profile is left
#   count CMD ARGS...        runs under icount (must succeed); `json EXPRESSION` then prints a value, with j the JSON
#   oracle PROGRAM ARGS...   the executed instructions that icount counts equal those of a single-stepped native run
#   accesses PROGRAM ARGS... the loads and stores that the tool memory counts equal those of a single-stepped native run
#   changing CMD ARGS...     stdout, stderr and status equal the native ones while threads change between two versions of all functions, by
#                            tests/two_versions with OPTIONS; `json EXPRESSION` then prints a value
#   changing_exactly CMD...  … and the instructions that are executed in both versions are those that icount counts
#   profile CMD ARGS...      runs under `weir profile`, with OPTIONS, and must end with STATUS; `ask SQL` then asks the store,
#                            `report VIEW...` prints a report of it
#   sampled CMD ARGS...      the same as `same`, under `weir sample` alone, RATE times a second (20,000); `ask` and `report` then tell of it
#   seen FUNCTION...         each of these was met by a sample, or called what was
#   start CMD ARGS...        runs it in the background, natively, until it has printed a line: its pid is $P. `finish` ends its stdin,
#                            waits for it and leaves $T/started.out, .status; `state` prints what Weir must leave as it is
#   calls "CMD ARGS..." FUNCTION...   runs under `weir run --tool=calls`, with OPTIONS, and must end with STATUS; `number FUNCTION calls|returned|left`
#                            then tells, and `traced EXPRESSION` prints a value, with j the JSON and of(FUNCTION) its traced calls in order
#   counted_by_gdb "FUNCTIONS" CMD ARGS...   how often breakpoints at their first instructions are hit; `calls_equal` with the same words: Weir counts the same
#   view FILE OPTIONS...     serves the page about it; `question NAME?PARAMETERS` then prints an answer, and fails where that is an error;
#                            `stop_view` ends it, which must be well
#   wait_for CMD ARGS...     until it succeeds; fails after $LIMIT seconds, which only what hangs takes. No test waits for a time instead: machines
#                            are slow, and busy. `works PID [N]` waits until a process has used N hundredths of a second (10) more of a processor,
#                            `interrupted SIGNAL CMD…` sends a signal, as a terminal would, to all of CMD as soon as there is a file $T/ready, and leaves
#                            $T/weir.out, .err, .status
#   use_tool NAME            from here on Weir is tests/tools/NAME, under which `same` and its kin run, and `under CMD ARGS...`, with OPTIONS: it must
#                            end with STATUS, and leaves $T/weir.out, .err and .json; `told EXPRESSION` prints a value, with j that JSON
#   need PROGRAM..., need_cpu FLAG..., skip WHY   the machine lacks something: exit 77
# Variables in front of `same` and its kin: STATUS=n, STDIN=file, OPTIONS='weir options', TOOLS='none icount'.
# Each run starts in a new empty directory, $T/cwd, with a fixed environment.
# shellcheck shell=bash
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PROGRAMS=$HERE/../programs
WEIR=$(realpath -m "${WEIR:-$HERE/../../build/weir}")
TOOLS=${TOOLS-none icount}
LIMIT=300
[[ -x $WEIR ]] || { echo "FAIL: $WEIR is missing: build it, or set WEIR" >&2; exit 1; }
T=$(mktemp -d /tmp/weir-test.XXXXXX)
trap 'chmod -R u+rwX "$T" 2>/dev/null; rm -rf "$T" 2>/dev/null || { sleep 2; rm -rf "$T"; }' EXIT  # a Weir left behind may still write
mkdir "$T/tmp"
ulimit -c 0
for variable in $(compgen -e); do
  case $variable in PATH | PWD | SHLVL) ;; WEIR_PROCESSOR) ;; WEIR | TOOLS) export -n "$variable" ;; *) unset "$variable" ;; esac
done
export PATH=/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C TZ=UTC HOME=$T TMPDIR=$T/tmp
export GOCACHE=$T/tmp/go GOPATH=$T/tmp/gopath GO111MODULE=off GOFLAGS=-p=1 GIT_CONFIG_NOSYSTEM=1 PYTHONDONTWRITEBYTECODE=1

fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "skip: $*"; exit 77; }
need() { local p; for p; do command -v "$p" >/dev/null || skip "$p is not installed"; done; }
need_cpu() { local f; for f; do grep -qw -- "$f" /proc/cpuinfo || skip "the CPU lacks $f"; done; }
# WEIR_PROCESSOR=LEVEL runs any test as on such a processor: Weir uses no more than that has. (The program sees the one that there is.)
case ${WEIR_PROCESSOR:-} in
  v2) need_cpu cx16 popcnt sse4_2 ssse3 ;;
  v3) need_cpu avx2 bmi1 bmi2 f16c fma abm movbe ;;
  v4) need_cpu avx512f avx512bw avx512cd avx512dq avx512vl ;;
esac

wait_for() { local end=$((SECONDS + LIMIT)); until "$@"; do ((SECONDS < end)) || return 1; sleep 0.02; done; }
is_alive() { [[ -e /proc/$1 && $(awk '{ print $3 }' "/proc/$1/stat" 2>/dev/null) != Z ]]; }
is_gone() { ! is_alive "$1"; }
is_attached() { grep -qs memfd:weir "/proc/$1/maps"; }
is_traced() { [[ $(awk '/^TracerPid/ { print $2 }' "/proc/$1/status") != 0 ]]; }
ticks_of() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }
has_worked() { [[ ! -e /proc/$1 ]] || (($(ticks_of "$1") >= $2)); }
works() { wait_for has_worked "$1" $(($(ticks_of "$1") + ${2:-10})) || fail "process $1 does not work"; }
interrupted() {
  local signal=$1 status=0; shift
  rm -f "$T/ready"
  set -m  # (a process group of its own)
  "$@" >"$T/weir.out" 2>"$T/weir.err" </dev/null & P=$!
  set +m
  wait_for test -e "$T/ready" || { kill -KILL -- -$P; fail "$*: is not ready: $(<"$T/weir.err")"; }
  kill -"$signal" -- -$P
  wait_for is_gone $P || { kill -KILL -- -$P; fail "$*: $signal does not end it"; }
  wait $P || status=$?
  echo $status >"$T/weir.status"
}

use_tool() { WEIR=$(dirname "$WEIR")/tests/weir_$1 TOOLS=$1; [[ -x $WEIR ]] || fail "$WEIR is missing"; }
under() {
  rm -f "$T/weir.json"
  run weir "$WEIR" run --json "$T/weir.json" ${OPTIONS:-} -- "$@"
  [[ $(<"$T/weir.status") == "${STATUS:-0}" ]] || fail "$*: status $(<"$T/weir.status"): $(head -c 2000 "$T/weir.err" "$T/weir.out")"
}
told() { python3 -c "import json; j = json.load(open('$T/weir.json')); print($1)"; }

build() {  # build SOURCE OUTPUT [flags]
  local source=$1 output=$2; shift 2
  case $source in
    *.cc) g++ -std=c++20 -O2 -w -I"$PROGRAMS" "$source" -o "$output" "$@" ;;
    *.rs) rustc -O -A warnings "$source" -o "$output" "$@" ;;
    *.go) go build -o "$output" "$@" "$source" ;;
    *) gcc -O2 -w -I"$PROGRAMS" "$source" -o "$output" "$@" ;;
  esac || fail "cannot build $source"
}
compile() { local source=$T/$1; cat >"$source"; build "$source" "${source%.*}" "${@:2}"; }
library() { local source=$T/$1 name=${1%.*}; cat >"$source"; build "$source" "$T/lib$name.so" -shared -fPIC "${@:2}"; }
bare() {
  { cat <<'S'; cat; } | compile "$1.S" -nostdlib -static "${@:2}"
  .macro function name
  .globl \name
  .type \name, @function
\name:
  .endm
  .macro end name
  .size \name, . - \name
  .endm
  .macro ten_times
  function _start
  mov $10, %ebx
1:
  .endm
  .macro again
  dec %ebx
  jnz 1b
  mov $60, %eax
  xor %edi, %edi
  syscall
  end _start
  .endm
S
}

close_others() { local fd; for fd in /proc/self/fd/*; do fd=${fd##*/}; ((fd < 3)) || eval "exec $fd>&-"; done; }
run() {  # run NAME CMD...: leaves $T/NAME.out, .err and .status
  local name=$1 status=0; shift
  rm -rf "$T/cwd"; mkdir "$T/cwd"
  # The outer group swallows the shell's own words about a child that a signal ended.
  { (cd "$T/cwd"; close_others; exec timeout -k 5 "${TIMEOUT:-$LIMIT}" "$@" <"${STDIN:-/dev/null}" >"$T/$name.out" 2>"$T/$name.err") || status=$?; } 2>/dev/null
  echo $status >"$T/$name.status"
}
compare() {  # compare "PARTS" CMD...
  local parts=$1 tool part tools=$TOOLS; shift
  [[ $TOOLS != 'none icount' ]] || tools+=' profile'
  run native "$@"
  local status; status=$(<"$T/native.status")
  [[ ${STATUS:-0} == any || $status == "${STATUS:-0}" ]] ||
    fail "native: $*: exit status $status, not ${STATUS:-0}"$'\n'"$(head -c 2000 "$T/native.err")"
  for tool in $tools; do
    rm -f "$T/run.weir"
    if [[ $tool == profile ]]; then run weir "$WEIR" profile -q -o "$T/run.weir" ${OPTIONS:-} -- "$@"
    elif [[ $tool == sample ]]; then run weir "$WEIR" sample -q -F "${RATE:-20000}" -o "$T/run.weir" ${OPTIONS:-} -- "$@"
    else run weir "$WEIR" run -q --tool="$tool" ${OPTIONS:-} -- "$@"; fi
    [[ ! -s $T/run.weir ]] || check_profile "$*"
    for part in $parts; do
      cmp -s "$T/native.$part" "$T/weir.$part" || {
        echo "--tool=$tool: $*"
        echo "exit status: native $status, weir $(<"$T/weir.status")"
        diff -a -u --label "native $part" --label "weir $part" "$T/native.$part" "$T/weir.$part" | cut -c1-300 | head -n 40 || true
        [[ $part == err ]] || head -c 1000 "$T/weir.err"
        fail "$part differs under --tool=$tool"
      }
    done
  done
}
same() { compare 'status err out' "$@"; }
same_out() { compare 'status out' "$@"; }
same_status() { compare 'status' "$@"; }

expect_fail() {
  local status=$1 pattern=$2; shift 2
  run weir "$@"
  [[ $(<"$T/weir.status") == "$status" && ! -s $T/weir.out ]] && (( $(wc -l <"$T/weir.err") == 1 )) &&
    grep -Eq "^weir: .*($pattern)" "$T/weir.err" && return
  fail "$*: expected status $status and one line 'weir: ...$pattern'; got status $(<"$T/weir.status") and"$'\n'"$(head -c 2000 "$T/weir.err" "$T/weir.out")"
}
refused() {
  local status=$1 pattern=$2; shift 2
  expect_fail "$status" "$pattern" "$WEIR" run -- "$@"
  expect_fail "$status" "$pattern" "$WEIR" profile -o "$T/refused.weir" -- "$@"
  [[ ! -e $T/refused.weir ]] || fail "$*: a profile of what did not run"
}
count() {
  rm -f "$T/count.json"
  run count "$WEIR" run -q --tool=icount --json "$T/count.json" ${OPTIONS:-} -- "$@"
  [[ $(<"$T/count.status") == "${STATUS:-0}" && -s $T/count.json ]] ||
    fail "icount: $*: status $(<"$T/count.status"): $(head -c 2000 "$T/count.err")"
}
json() { python3 -c "import json; j = json.load(open('$T/count.json')); print($1)"; }
# Both runs start from the same stack, as addresses and alignment decide how many instructions some functions take.
# (Weir refuses rseq, so the C library takes another path: natively, it is told not to use it.)
NO_RSEQ=glibc.pthread.rseq=0
stepped() {
  STATUS=any TOOLS='' same_status env -i GLIBC_TUNABLES=$NO_RSEQ "$T/step" ${VERBOSE:-} "$@"
  cp "$T/native.err" "$T/steps"
  sed -n 's/^instructions //p' "$T/steps"
}
oracle() {
  [[ -x $T/step ]] || build "$PROGRAMS/step.c" "$T/step"
  local status stepped again; stepped=$(stepped "$@"); status=$(<"$T/native.status")
  run count env -i GLIBC_TUNABLES=$NO_RSEQ setarch -R "$WEIR" run -q --keep-addresses --tool=icount --json "$T/count.json" ${OPTIONS:-} -- "$@"
  [[ $(<"$T/count.status") == "$status" && -s $T/count.json ]] || fail "icount: $*: status $(<"$T/count.status"), natively $status: $(head -c 2000 "$T/count.err")"
  [[ $(json 'j["instructions"]') != "$stepped" ]] || return 0
  again=$(stepped "$@")  # (the loader takes another path where a package was just installed)
  if [[ $again != "$stepped" ]]; then oracle "$@"; return; fi
  fail "$*: icount $(json 'j["instructions"]'), single-stepped $stepped instructions"
}
# The loads and stores that `weir run --tool=memory` counts equal those of a single-stepped native run (tests/unit/memory_steps.cc).
accesses() {
  local steps=$HERE/../../build/tests/memory_steps
  [[ -x $steps ]] || skip "memory_steps is not built"
  STATUS=any TOOLS='' same_status env -i GLIBC_TUNABLES=$NO_RSEQ setarch -R "$steps" "$T/steps.json" "$@"
  run count env -i GLIBC_TUNABLES=$NO_RSEQ setarch -R "$WEIR" run -q --keep-addresses --tool=memory --json "$T/count.json" -- "$@"
  [[ $(<"$T/count.status") == $(<"$T/native.status") ]] || fail "$*: status $(<"$T/count.status"), natively $(<"$T/native.status"): $(<"$T/count.err")"
  python3 - "$T" "$*" <<'P' || fail "$*: not as single-stepped"
import json, sys
t = sys.argv[1]
steps, ours = json.load(open(f"{t}/steps.json")), json.load(open(f"{t}/count.json"))
wrong = 0
def compare(what, a, b):
    global wrong
    for key in ("loads", "stores", "bytes_read", "bytes_written"):
        if a.get(key, 0) != b.get(key, 0): print(f"{what} {key}: single-stepped {a.get(key, 0)}, counted {b.get(key, 0)}"); wrong += 1
compare("all", steps, ours)
for part in ("by_kind", "by_size"):
    for name in sorted(steps[part].keys() | ours[part].keys()): compare(f"{part} {name}", steps[part].get(name, {}), ours[part].get(name, {}))
for key in ("loads", "stores", "bytes_read", "bytes_written"):
    for part in ("by_kind", "by_size", "images"):
        if sum(c[key] for c in ours[part].values()) != ours[key]: print(f"{part} {key}: the sum is another"); wrong += 1
if ours["loads"] < 300: print("hardly anything was counted"); wrong += 1
print(f"{sys.argv[2]}: {ours['loads']} loads, {ours['stores']} stores")
sys.exit(bool(wrong))
P
}
VERSIONS=$(dirname "$WEIR")/tests/two_versions
AS_EVER="env -i GLIBC_TUNABLES=$NO_RSEQ PERL_HASH_SEED=0 PYTHONHASHSEED=0 setarch -R"
changing() {
  local part
  run native ${BEFORE:-} "$@"
  rm -f "$T/count.json"
  run weir ${BEFORE:-} "$VERSIONS" --json "$T/count.json" ${OPTIONS:---probes 4 --moves 300} -- "$@"
  for part in status err out; do
    cmp -s "$T/native.$part" "$T/weir.$part" ||
      fail "$*: $part differs: $(diff -a "$T/native.$part" "$T/weir.$part" | cut -c1-300 | head -n 20)"$'\n'"$(head -c 1000 "$T/weir.err")"
  done
  [[ -s $T/count.json ]] || fail "$*: nothing was counted"
}
# (Not every run is the same: a clock of the vdso is read again where the kernel is just setting it.)
changing_exactly() {
  local sum counted left=8
  for (( ; ; )); do
    BEFORE=$AS_EVER OPTIONS="--keep-addresses yes ${OPTIONS:---probes 4 --moves 300}" changing "$@"
    cp "$T/count.json" "$T/versions.json"
    sum=$(json 'j["instructions"]')
    BEFORE='' run count $AS_EVER "$WEIR" run -q --keep-addresses --tool=icount --json "$T/count.json" -- "$@"
    counted=$(json 'j["instructions"]')
    [[ $counted == "$sum" ]] && break
    ((--left)) || fail "$*: icount $counted, in both versions $sum instructions: $(<"$T/versions.json")"
  done
  cp "$T/versions.json" "$T/count.json"
}
profile() {
  rm -f "$T/run.weir"
  run profile "$WEIR" profile -q -o "$T/run.weir" ${OPTIONS:-} -- "$@"
  [[ $(<"$T/profile.status") == "${STATUS:-0}" && -s $T/run.weir ]] ||
    fail "profile: $*: status $(<"$T/profile.status"), not ${STATUS:-0}: $(head -c 2000 "$T/profile.err")"
  check_profile "$*"
}
check_profile() {  # of what was run: all that must hold in a profile does
  "$WEIR" report --check "$T/run.weir" >"$T/check" 2>&1 || fail "the profile of $1 is wrong:"$'\n'"$(head -c 4000 "$T/check")"
}
sampled() { local TOOLS=sample; same "$@"; }
calls() {
  local command=$1 f options=(); shift
  for f; do options+=(--function "$f"); done
  rm -f "$T/calls.json"
  # shellcheck disable=SC2086
  run calls "$WEIR" run -q --tool=calls --json "$T/calls.json" "${options[@]}" ${OPTIONS:-} -- $command
  [[ $(<"$T/calls.status") == "${STATUS:-0}" && -s $T/calls.json ]] ||
    fail "calls: $command: status $(<"$T/calls.status"): $(head -c 2000 "$T/calls.err")"
}
number() { python3 -c "
import json
j = json.load(open('$T/calls.json'))
print(sum(f['$2'] for f in j['functions'] if f['symbol'].split('@')[0] == '$1'))"; }
traced() { python3 -c "
import json
j = json.load(open('$T/calls.json'))
names = [f['symbol'].split('@')[0] for f in j['functions']]
def of(name): return [c for t in j['threads'] for c in t['calls'] if names[c['function']] == name]
print($1)"; }
counted_by_gdb() {  # (libraries are there at the first stop for them, and nothing of them has run)
  cat >"$T/gdb.py" <<P
gdb.execute("set breakpoint auto-hw off")
if $(readelf -lW "$2" | grep -c INTERP):
    gdb.execute("set stop-on-solib-events 1")
    gdb.execute("run")
    while not any("libc.so" in o.filename for o in gdb.objfiles()): gdb.execute("continue")
    gdb.execute("set stop-on-solib-events 0")
else:
    gdb.execute("starti")
found = []
for name in "$1".split():
    b = gdb.Breakpoint("*" + name)
    b.ignore_count = 1 << 30
    where = gdb.solib_name(int(gdb.parse_and_eval("(long)" + name))) or "$2"
    found.append((b, name, where.split("/")[-1]))
gdb.execute("continue")
for b, name, where in found: print("hits", name, where, b.hit_count)
P
  run gdb gdb -batch -nx -iex "set debuginfod enabled off" -x "$T/gdb.py" --args "${@:2}"
  sed -n 's/^hits //p' "$T/gdb.out" >"$T/by_gdb"
  [[ -s $T/by_gdb ]] || fail "gdb: $(tail -n 5 "$T/gdb.err")"
}
calls_equal() {
  # shellcheck disable=SC2086
  calls "${*:2}" $1
  python3 - "$T/calls.json" "$T/by_gdb" <<'P' || fail "${*:2}: another number of calls"
import json, os, sys
functions = json.load(open(sys.argv[1]))["functions"]
for line in open(sys.argv[2]):
    name, image, hits = line.split()
    calls = sum(f["calls"] for f in functions if f["symbol"].split("@")[0] == name and os.path.basename(os.path.realpath(f["image"])) == os.path.basename(os.path.realpath("/lib/x86_64-linux-gnu/" + image) if ".so" in image else image))
    if calls != int(hits): sys.exit(f"{name} in {image}: weir {calls}, gdb {hits}")
P
}
seen() {
  local name
  for name; do
    [[ $(ask "SELECT sum(total) > 0 FROM function_total WHERE name = '$name'") == 1 ]] ||
      fail "$name is not in the profile: $(ask "SELECT group_concat(name || ' ' || total, ', ') FROM function_total")"
  done
}
ask() { sqlite3 -bail "$T/run.weir" "$1" || fail "the store does not answer: $1"; }
report() { "$WEIR" report "$T/run.weir" "$@" || fail "report $*"; }
answers() {  # answers SQL <<E: … what is expected
  local got expected; got=$(ask "$1"); expected=$(cat)
  [[ $got == "$expected" ]] || { diff <(echo "$expected") <(echo "$got") || true; fail "not as expected (<): $1"; }
}
start() {
  rm -f "$T/started.in"; mkfifo "$T/started.in"; : >"$T/started.out"
  "$@" <"$T/started.in" >"$T/started.out" 2>&1 & P=$!
  exec 9>"$T/started.in"
  until [[ -s $T/started.out ]]; do kill -0 $P || fail "$* did not start"; sleep 0.02; done
}
finish() { local status=0; exec 9>&-; wait $P || status=$?; echo $status >"$T/started.status"; }
view() {
  : >"$T/view.out"
  timeout -k 1 100 "$WEIR" view --no-open "$@" >"$T/view.out" 2>"$T/view.err" & P=$!
  until [[ -s $T/view.out ]]; do kill -0 $P 2>/dev/null || fail "view $*: $(<"$T/view.err")"; sleep 0.02; done
  ADDRESS=$(<"$T/view.out")
}
question() {
  python3 - "$ADDRESS" "$1" <<'P'
import sys, urllib.error, urllib.parse, urllib.request
name, _, parameters = sys.argv[2].partition('?')
try: print(urllib.request.urlopen(sys.argv[1] + 'q/' + name + '?' + urllib.parse.quote(parameters, safe='&='), timeout=300).read().decode())
except urllib.error.HTTPError as e: sys.exit(print(e.read().decode()) or 1)
P
}
stop_view() { local status=0; kill $P; wait $P || status=$?; [[ $status == 0 ]] || fail "view ended with $status: $(<"$T/view.err")"; }
state() {
  sed -E 's/ +/ /g' /proc/$P/maps | grep -Ev '\[(heap|stack)\]| 00:00 0 ?$'  # (its own memory comes and goes)
  grep -c 'memfd:weir' /proc/$P/maps || true
  find /proc/$P/fd -type l -printf '%f %l\n' | sort
  grep -hE '^Sig(Ign|Cgt|Blk)' /proc/$P/status
  cat /proc/$P/timers
}
