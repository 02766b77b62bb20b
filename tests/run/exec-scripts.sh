# Scripts by their shebang line, with an argument, nested, and as the program itself.
. "$(dirname "$0")/lib.sh"
printf '#!/bin/sh\necho "$0 has $# arguments: $*"\nexit 3\n' >"$T/plain"
printf '#!/bin/bash -eu\nfalse\necho not here\n' >"$T/option"
printf '#!%s/plain inner\n' "$T" >"$T/nested"
printf '#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1:])\n' >"$T/python"
printf '#!/usr/bin/awk -f\nBEGIN { for (i = 1; i < ARGC; i++) print ARGV[i] }\n' >"$T/awk"
chmod +x "$T"/{plain,option,nested,python,awk}
STATUS=3 same "$T/plain" a 'b c' ''
STATUS=1 same "$T/option"
STATUS=3 same "$T/nested" x
same "$T/python" 1 2
same "$T/awk" p q
STATUS=3 same bash -c "cd $T && ./python y && exec ./nested z"
PATH=$T:$PATH STATUS=3 same plain from PATH
