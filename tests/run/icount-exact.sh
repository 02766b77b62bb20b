# Icount is exact: a program whose instructions are known by counting them, and by single-stepping a native run.
. "$(dirname "$0")/lib.sh"
compile loops.S -nostdlib -static <<'S'
  .globl _start
_start:                                     # 1 + 5 * 1000
  mov $1000, %ebx
1: call leaf
  dec %ebx
  jnz 1b
  mov $100, %ebx                            # 1 + 100 * 6: a rep counts once, whatever its count
2: lea buffer(%rip), %rdi
  lea (%rbx,%rbx), %ecx
  xor %eax, %eax
  rep stosb
  dec %ebx
  jnz 2b
  mov $60, %eax                             # 3
  xor %edi, %edi
  syscall
leaf: inc %edx
  ret
  .bss
buffer: .fill 300
S
count "$T/loops"
expected=$((1 + 5 * 1000 + 1 + 100 * 6 + 3))
[[ $(json 'j["instructions"]') == "$expected" ]] || fail "$(json 'j["instructions"]') instructions, not $expected"
[[ $(json 'j["blocks"] > 2100') == True ]] || fail "$(json 'j["blocks"]') blocks"
[[ $(json 'len(j["threads"]), len(j["processes"]), [t["instructions"] for t in j["threads"]]') == "1 1 [$expected]" ]] || fail "$(json 'j["threads"], j["processes"]')"
[[ $(json '[i["instructions"] for i in j["images"].values()]') == "[$expected]" ]] || fail "$(json 'j["images"]')"
[[ $(json 'j["processes"][0]["program"]') == */loops ]] || fail "$(json 'j["processes"]')"
oracle "$T/loops"
[[ $(sed -n 's/^instructions //p' "$T/steps") == "$expected" ]] || fail "the single-stepper counts $(cat "$T/steps")"
