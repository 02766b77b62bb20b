# A sampled program executes a 32-bit one: that runs, and is not sampled; what it executes is.
. "$(dirname "$0")/lib.sh"
as --32 -o "$T/small.o" - <<'S' || fail "cannot assemble"
        .globl _start
_start: movl (%esp), %ecx               # without arguments: says hello; with them: executes the first
        cmpl $2, %ecx
        jge 1f
        movl $4, %eax
        movl $1, %ebx
        movl $hello, %ecx
        movl $6, %edx
        int $0x80
        movl $162, %eax                 # and sleeps for a moment, so that Weir comes to it
        movl $moment, %ebx
        movl $0, %ecx
        int $0x80
        movl $1, %eax
        movl $7, %ebx
        int $0x80
1:      movl $11, %eax
        movl 8(%esp), %ebx
        leal 8(%esp), %ecx
        movl $0, %edx
        int $0x80
        ud2
moment: .long 0, 300000000
hello:  .ascii "hello\n"
S
ld -m elf_i386 -o "$T/small" "$T/small.o" || fail "cannot link"
run native "$T/small"
[[ $(<"$T/native.status") == 7 ]] || skip "the kernel runs no 32-bit programs"
sampled bash -c "$T/small; echo \$?; exec $T/small"' /bin/bash -c "for ((i = 0; i < 100000; i++)); do :; done; echo \$i"'
STATUS=7 sampled bash -c "exec $T/small"
run weir "$WEIR" sample -o "$T/run.weir" -- bash -c "$T/small; $T/small"
grep -q '32-bit' "$T/weir.err" || fail "Weir does not say what it did not sample: $(<"$T/weir.err")"
