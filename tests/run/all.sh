#!/bin/bash
# all.sh [-j N] [NAME...]: runs all tests of this directory, or those named (as `signals-masks` or `signals-*`): a line each,
# the output of those that fail, and a sum. The status is 0 when none failed.
set -euo pipefail
cd "$(dirname "$0")"
jobs=1
while getopts j: option; do
  case $option in j) jobs=$OPTARG ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
(($#)) || set -- '*'
tests=()
for pattern; do
  found=0
  for file in ${pattern%.sh}.sh; do
    [[ -f $file ]] || continue
    found=1
    [[ $file == all.sh || $file == lib.sh ]] || tests+=("${file%.sh}")
  done
  ((found)) || { echo "all.sh: no test is named $pattern" >&2; exit 2; }
done
results=$(mktemp -d /tmp/weir-all.XXXXXX)
trap 'rm -rf "$results"' EXIT

one() {
  local log=$results/$1.log status=0 word
  timeout -k 5 900 bash "./$1.sh" >"$log" 2>&1 </dev/null || status=$?
  case $status in
    0) word=pass; echo "pass $1" ;;
    77) word=skip; echo "skip $1: $(tail -n 1 "$log" | sed 's/^skip: //')" ;;
    *) word=fail
       ((status != 124)) || echo 'took more than 900 s' >>"$log"
       { echo "FAIL $1"; sed 's/^/    /' "$log"; } ;;
  esac
  echo >"$results/$1.$word"
}
for test in "${tests[@]}"; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
  one "$test" &
done
wait
number() { find "$results" -name "*.$1" | wc -l; }
echo "$(number pass) passed, $(number fail) failed, $(number skip) skipped"
(($(number fail) == 0 && $(number pass) + $(number skip) == ${#tests[@]}))
