# spec 1, T6: by the clock of instructions every instruction is one, a repeated string instruction too.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile repeats.S -nostdlib -static <<'S'
  .globl _start
  .type _start, @function
_start: lea buffer(%rip), %rdi
  mov $4096, %ecx
  rep stosb
  mov $60, %eax
  xor %edi, %edi
  syscall
  .size _start, . - _start
  .bss
buffer: .space 4096
S
OPTIONS=--clock=instructions profile "$T/repeats"
answers "SELECT cycles, instructions FROM thread" <<<'6|6'
profile "$T/repeats"
answers "SELECT cycles > 64 FROM thread" <<<1
# … and so exports say, in one total, as callgrind has it.
OPTIONS='--clock=instructions --paths=full' profile /bin/true
"$WEIR" export "$T/run.weir" --format callgrind -o "$T/callgrind.out"
grep -q '^events: Ir Waited$' "$T/callgrind.out" || fail "$(grep '^event' "$T/callgrind.out")"
[[ $(sed -n 's/^summary: \([0-9]*\).*/\1/p' "$T/callgrind.out") == "$(ask 'SELECT sum(cycles) FROM thread')" ]] || fail "$(grep summary "$T/callgrind.out")"
"$WEIR" export "$T/run.weir" --format pprof -o "$T/pb.gz"
gunzip -c "$T/pb.gz" | grep -aq instructions || fail 'pprof speaks of no instructions'
! gunzip -c "$T/pb.gz" | grep -aq '^cycles$' || fail 'pprof speaks of cycles'
