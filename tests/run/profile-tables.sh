# spec 1, A3: the example of the seed's Tables I to III. D is called 40 times by B and 40 times by C, three quarters of its time for
# B. With the clock of instructions every figure can be counted in the source; two runs agree to the unit, in cycles too.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq
bare tables <<'S'
  .macro spin count            # 1 + 2 * count
  mov $\count, %ecx
7: dec %ecx
  jnz 7b
  .endm
  function _start              # 100, with main 101100
  spin 47
  call main
  mov $60, %eax
  xor %edi, %edi
  nop
  syscall
  end _start
  function main                # 1000
  spin 498
  nop
  call A
  ret
  end main
  function A                   # 10000
  spin 4998
  call B
  call C
  ret
  end A
  function B                   # 20000: 9 + 40 * 5 + 1 + 19790
  push %rbx
  mov $40, %ebx
1: mov $374, %edi
  call D
  nop
  dec %ebx
  jnz 1b
  spin 9895
  nop
  nop
  nop
  nop
  nop
  pop %rbx
  ret
  end B
  function C                   # 30000
  push %rbx
  mov $40, %ebx
1: mov $124, %edi
  call D
  nop
  dec %ebx
  jnz 1b
  spin 14895
  nop
  nop
  nop
  nop
  nop
  pop %rbx
  ret
  end C
  function D                   # 2 + 2 * edi: 750 for B, 250 for C; 30000 and 10000
  dec %edi
  jnz D
  nop
  ret
  end D
S
OPTIONS=--clock=instructions profile "$T/tables"
answers "SELECT name, calls, self, total FROM function_total ORDER BY total DESC, self" <<'E'
_start|1|100|101100
main|1|1000|101000
A|1|10000|100000
B|1|20000|50000
C|1|30000|40000
D|80|40000|40000
E
answers "SELECT name, self_min, self_max FROM function_total WHERE name IN ('C', 'D') ORDER BY name" <<'E'
C|30000|30000
D|250|750
E
[[ $(report detail D --format json | jq -r '.callers[] | "\(.name) \(.calls) \(.total)"' | sort) == $'B 40 30000\nC 40 10000' ]] ||
  fail "the callers of D: $(report detail D --format json)"
[[ $(ask 'SELECT sum(cycles), sum(instructions) FROM thread') == '101100|101100' ]] || fail "the thread's sums"

figures() {
  ask 'SELECT name, calls, self, total, self_min, self_max FROM function_total ORDER BY name'
  ask 'SELECT callee, site, calls, total FROM call_count ORDER BY 1, 2'
}
profile "$T/tables"; figures >"$T/first"
profile "$T/tables"; figures >"$T/second"
cmp "$T/first" "$T/second" || fail "two runs differ: $(diff "$T/first" "$T/second")"
answers "SELECT calls, (SELECT total FROM function_total WHERE name = '_start') = (SELECT sum(cycles) FROM thread)
         FROM function_total WHERE name = 'D'" <<<'80|1'
