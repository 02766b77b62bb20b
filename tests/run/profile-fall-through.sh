# spec 1, A4: a function that runs on into the next one has called it at its end; a hole in the unwind tables of a function, which has no symbol
# either, is part of it.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq
bare falls <<'S'
  ten_times
  call first
  call second
  call holed
  again
  function first
  nop
  nop
  end first
  function second
  nop
  ret
  end second
  function holed
  .cfi_startproc
  nop
  .cfi_endproc
  nop
  nop
  ret
  end holed
  .p2align 4
  function last
  .cfi_startproc
  ret
  .cfi_endproc
  end last
S
OPTIONS=--clock=instructions profile "$T/falls"
answers "SELECT name, calls, self, total FROM function_total ORDER BY offset" <<'E2'
_start|1|54|154
first|10|20|40
second|20|40|40
holed|10|40|40
E2
answers "SELECT f.name, s.kind, sum(c.calls), sum(c.total) FROM call_count c JOIN site s ON s.id = c.site JOIN function_total f ON f.id = s.function
         WHERE c.callee = (SELECT id FROM function_total WHERE name = 'second') GROUP BY s.id ORDER BY f.name" <<'E2'
_start|call|10|20
first|tail call|10|20
E2
# A place in an image is the function that begins there.
[[ $(report detail "falls+$(printf %#x "$(ask "SELECT offset FROM function_total WHERE name = 'second'")")" --format json | jq -r .name) == second ]] || fail "second, by its place"
