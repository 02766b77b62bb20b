# Pipes between many processes, SIGPIPE of the writer, job control in a shell without a terminal.
. "$(dirname "$0")/lib.sh"
same bash -c 'seq 50000 | grep 7 | sort -rn | sed s/7/x/g | tr x y | awk "{ n += length } END { print n }" | cat | cat'
same bash -c 'yes | head -n 1000 | wc -l; echo "${PIPESTATUS[*]}"; (yes; echo $? >&2) | true'
same bash -c 'mkfifo f; (cat f; echo done) & seq 1000 >f; wait'
same bash -c 'for i in $(seq 30); do (echo $i | (read x; exit $x)) & p[$i]=$!; done; for i in $(seq 30); do wait ${p[$i]}; echo $?; done'
same bash -c 'seq 100 | tee >(wc -l >count) | tail -n 1; while [[ ! -s count ]]; do sleep 0.02; done; cat count; seq 10 | xargs -n 3 -P 1 echo'
same bash -c 'set -m; sleep 100 & kill -STOP %1; wait -n %1 2>/dev/null; jobs; kill -CONT %1; kill %1; wait %1; echo $?'
STATUS=7 same bash -c 'trap "echo INT; exit 7" INT; kill -INT $$; echo no'
