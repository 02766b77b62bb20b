# Code of which nobody says where its functions begin and end: one ends, at the latest, where it calls the next, or where padding does. No code is then
# that of two functions, in one of which a call would begin and in the other end.
. "$(dirname "$0")/lib.sh"
bare plain -s <<'S'
outer: sub $8, %rsp
  call inner
  cmp $77, %ebx
  je 2f
  add $8, %rsp
  ret
2: int3
inner: sub $8, %rsp
  imul %ebx, %eax
  imul %ebx, %eax
  imul %ebx, %eax
  call nothing
  imul %ebx, %eax
  add $8, %rsp
  ret
nothing: ret
  .p2align 4, 0xcc
hop: xor %edi, %edi
  jmp next
  .p2align 4, 0xcc
next: sub $8, %rsp
  call nothing
  add $8, %rsp
  ret
  .p2align 4, 0xcc
checked: sub $8, %rsp
  call nothing
  cmp $77, %ebx
  je 2f
  add $8, %rsp
  ret
2: call nothing
  .p2align 4, 0xcc
behind: sub $8, %rsp
  call nothing
  add $8, %rsp
  ret
  .p2align 4, 0xcc
large: sub $8, %rsp
  cmp $3, %ebx
  je 4f
3: call nothing
  add $8, %rsp
  ret
  .fill 5000, 1, 0x90
4: imul %ebx, %eax
  call nothing
  jmp 3b
  .p2align 4, 0xcc
  ten_times
  call large
  call checked
  call behind
  call hop
  call next
  call outer
  cmp $5, %ebx
  jne 3f
  call inner
3:
  again
S
profile "$T/plain"
[[ $(ask "SELECT group_concat(calls) FROM (SELECT calls FROM function_total WHERE calls > 9 ORDER BY calls)") == 10,10,10,10,10,11,20,62 ]] || fail "$(ask "SELECT name, calls, self, total FROM function_total")"
[[ $(ask "SELECT count(*) FROM (SELECT 1 FROM block GROUP BY offset HAVING count(*) > 1)") == 0 ]] || fail "code of two functions"
