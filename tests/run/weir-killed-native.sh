# When Weir is killed, a process that it could not follow, and that runs natively, goes on; those that it served end.
. "$(dirname "$0")/lib.sh"
cat >"$T/pause.s" <<'S'
  .globl _start
_start:
  mov $29, %eax  # pause
  int $0x80
  jmp _start
S
as --32 "$T/pause.s" -o "$T/pause.o" && ld -m elf_i386 "$T/pause.o" -o "$T/pause32" || skip 'no 32-bit programs can be made here'
"$WEIR" run -- sh -c '"$0/pause32" & echo $! >"$0/part"; mv "$0/part" "$0/pid"; exec sleep 600' "$T" 2>"$T/err" & weir=$!
is_ready() { [[ -s $T/err && -e $T/pid ]] && pgrep -P $weir -x sleep >/dev/null; }
wait_for is_ready
native=$(<"$T/pid"); served=$(pgrep -P $weir -x sleep)
grep -q 'not followed.*32-bit' "$T/err" || fail "$(<"$T/err")"
kill -KILL $weir; wait $weir 2>/dev/null || true
wait_for is_gone $served || fail 'the program goes on without Weir'
sleep 0.5
is_alive $native || fail 'a process that ran natively was ended'
kill -KILL $native
