# spec 1, T2: five runs give the same calls, counts, instructions and cycles, with address randomisation and a loaded machine.
. "$(dirname "$0")/lib.sh"
need sqlite3 perl
compile mixed.cc -static -pthread -g <<'C'
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void half(long* out) { for (int i = 0; i < 50; i++) { try { if (i % 3 == 0) throw std::runtime_error("x"); *out += fib(10); } catch (...) { *out += 7; } } }
int main() {
  std::vector<std::string> words; for (int i = 0; i < 1000; i++) words.push_back(std::to_string(i * 7919 % 1009));
  std::sort(words.begin(), words.end());
  long sums[3] = {}; for (long& sum : sums) { std::thread t(half, &sum); t.join(); }
  static char big[100000]; memset(big, 1, sizeof big); asm volatile("" ::: "memory");
  std::printf("%s %ld\n", words[500].c_str(), sums[0] + sums[1] + sums[2] + big[5]);
}
C
# Of the program's own code: where strings on the stack lie in a page decides which way the C library's functions go.
own_figures() {
  local own="JOIN function f ON f.id = %s JOIN string n ON n.id = f.file AND n.text LIKE '%%/mixed.cc'"
  ask "SELECT f.offset, c.thread, c.calls, c.self, c.self_min, c.self_max FROM function_count c ${own/\%s/c.function} ORDER BY 1, 2"
  ask "SELECT b.offset, c.thread, c.count, c.extra FROM block_count c JOIN block b ON b.id = c.block ${own/\%s/b.function} ORDER BY 1, 2"
}
figures() {
  ask 'SELECT f.image, f.offset, c.thread, c.calls, c.self, c.total, c.self_min, c.self_max, c.os_calls FROM function_count c JOIN function f ON f.id = c.function ORDER BY 1, 2, 3'
  ask 'SELECT f.image, b.offset, c.thread, c.count, c.extra FROM block_count c JOIN block b ON b.id = c.block JOIN function f ON f.id = b.function ORDER BY 1, 2, 3'
  ask 'SELECT f.image, s.offset, s.kind, c.thread, g.offset, c.calls, c.total FROM call_count c JOIN site s ON s.id = c.site LEFT JOIN function f ON f.id = s.function JOIN function g ON g.id = c.callee ORDER BY 1, 2, 3, 4, 5'
  ask 'SELECT id, cycles, instructions FROM thread ORDER BY id'
}
load=()
for ((i = 0; i < $(nproc); i++)); do (exec timeout 60 bash -c 'while :; do :; done') & load+=($!); done
trap 'kill "${load[@]}" 2>/dev/null; rm -rf "$T"' EXIT
five() {
  local i
  for i in 1 2 3 4 5; do
    run profile ${BEFORE:-} "$WEIR" profile -q -o "$T/run.weir" -- "$@"
    ${FIGURES:-figures} >"$T/figures.$i"
    [[ $i == 1 ]] || cmp -s "$T/figures.1" "$T/figures.$i" || fail "$*: run $i differs: $(diff "$T/figures.1" "$T/figures.$i" | head -n 10)"
  done
  (($(wc -l <"$T/figures.1") > ${AT_LEAST:-1000})) || fail "$*: no figures"
}
FIGURES=own_figures AT_LEAST=20 five "$T/mixed"
# All figures, of the loader and the C library too, with the stack at one place.
BEFORE='setarch -R' five "$T/mixed"
export PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0
BEFORE='setarch -R' five perl -e 'my @a = map { $_ * 7919 % 1009 } 1..2000; print join(" ", (sort { $a <=> $b } @a)[0..9]), "\n"'
