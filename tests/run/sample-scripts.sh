# spec 3, S7: shell scripts with many short processes, at a high rate: none of them dies of our signal, none is lost.
. "$(dirname "$0")/lib.sh"
cat >"$T/script" <<'S'
#!/bin/bash
for i in {1..60}; do
  /bin/true || echo "true: $?"
  x=$(echo $i | tr 0-9 a-j | cat) || echo "pipe: $?"
  /bin/false && echo 'false is true'
  (exit 3); [ $? = 3 ] || echo "subshell: $?"
  printf '%s ' "$x"
done
/bin/true & wait $! || echo "job: $?"
trap 'echo bye' EXIT
S
chmod +x "$T/script"
sampled "$T/script"
sampled dash -c 'i=0; while [ $i -lt 60 ]; do /bin/sh -c "exit $i"; [ $? = $i ] || echo "$i: $?"; i=$((i + 1)); done'
