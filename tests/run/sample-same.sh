# spec 3, S7: a program that is sampled writes what it writes, ends as it ends, and dies of the signals that it dies of.
. "$(dirname "$0")/lib.sh"
seq 20000 >"$T/numbers"
STDIN=$T/numbers sampled sort -r
STATUS=42 sampled sh -c 'echo out; echo err >&2; exit 42'
for signal in TERM KILL SEGV ABRT TRAP; do
  STATUS=$((128 + $(kill -l $signal))) sampled sh -c "echo before; kill -$signal \$\$"
done
expect_fail 127 'not found' "$WEIR" sample -- no-such-program
expect_fail 126 'not executable' "$WEIR" sample -- "$T/numbers"
