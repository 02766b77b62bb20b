# Completes command lines as bash would cut them, and looks at what is offered.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ./weir.bash

# offers EXPECTED WORDS…: the last word is the one to complete; EXPECTED is a pattern.
offers() {
  COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
  _weir
  # shellcheck disable=SC2053
  [[ "${COMPREPLY[*]}" == $1 ]] || { echo "weir_test: ${*:2}: '${COMPREPLY[*]}' instead of '$1'" && exit 1; }
}

offers 'run report' weir r
offers 'report' weir rep
offers 'weir.bash' weir report weir.b
offers 'functions' weir report weir.bash f
offers 'summary source' weir report weir.bash s
offers '' weir report weir.bash detail f
offers '--format=' weir report weir.bash functions --form
offers 'json' weir report weir.bash functions --format = j
offers 'text json csv' weir report weir.bash functions --format =
offers 'json' weir report weir.bash --format j
offers 'tree' weir report --format = json weir.bash tr
offers 'calls' weir report weir.bash --sort ca
offers 'callgrind csv' weir export weir.bash --format c
offers 'folded firefox' weir export weir.bash --format f
offers 'json' weir diff a b --format j
offers 'markdown' weir diff a b --format m
offers '--port=' weir view weir.bash --p
offers 'speedscope svg' weir export weir.bash --format s
offers 'weir.bash' weir export weir.b
offers '--version' weir --
offers '--tool=' weir run --to
offers '--stats' weir run --tool = icount --st
offers 'none icount memory calls' weir run --tool =
offers 'icount' weir run --tool = i
offers 'icount' weir run --tool i
offers 'weir.bash' weir run --json weir.b
offers 'weir.bash' weir profile --log-file weir.b
offers '--verbose' weir profile --verb
offers 'weir.bash' weir run --stats --json = weir.b
offers '*basename*' weir run basenam
offers '*basename*' weir run --stats -- basenam
offers 'weir.bash' weir run --stats -- cat weir.b
offers 'weir.bash' weir run --tool = none cat weir.b
offers 'sample' weir sa
offers '--verify --verbose' weir sample --ver
offers 'cpu wall' weir sample --clock =
offers 'page-faults' weir sample --event page
offers 'heuristic' weir sample --unwind = h
offers 'weir.bash' weir sample -F 100 -- cat weir.b
offers '*basename*' weir sample --frequency = 100 basenam
