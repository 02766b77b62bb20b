# Bash scripts: loops, arrays, pipes, subshells, traps, here documents, functions.
. "$(dirname "$0")/lib.sh"
cat >"$T/script" <<'B'
#!/bin/bash
declare -A colours=([red]=1 [green]=2); array=(a b c "d e")
for i in {1..50}; do total=$((total + i * i)); done; echo $total
for key in $(printf '%s\n' "${!colours[@]}" | sort); do echo "$key=${colours[$key]}"; done
printf '<%s>' "${array[@]:1}"; echo
fib() { (($1 < 2)) && echo "$1" || echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); }
fib 8
cat <<HERE | tr a-z A-Z | sed 's/^/> /'
here $((6 * 7)) $(echo nested "$(echo twice)")
HERE
(cd /; x=inner; trap 'echo leaving subshell' EXIT; exit 3); echo "subshell: $? ${x-unset}"
trap 'echo got USR1' USR1; kill -USR1 $$; trap 'echo bye' EXIT
seq 1000 | while read -r n; do ((n % 250)) || echo "$n"; done
{ echo out; echo err >&2; } 2>&1 | sort; echo "${PIPESTATUS[*]}"
diff <(seq 5) <(seq 2 6); echo "diff: $?"
sleep 0.01 & wait $!; echo "waited: $?"
(kill -TERM $BASHPID); echo "killed: $?"
coproc cat; echo through >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"; exec {COPROC[1]}>&-; wait
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
printf '%s\n' {z..a} | mapfile -t lines; read -r a b <<<"x y"; echo "$b $a"
no_such_command; echo $?
exit 12
B
chmod +x "$T/script"
STATUS=12 same "$T/script"
STATUS=12 STDIN=$T/script same bash
same dash -c 'i=0; while [ $i -lt 100 ]; do i=$((i + 1)); done; echo $i | cat | cat; (exit 4) || echo $?'
