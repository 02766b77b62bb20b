# Clisp, which maps its heap at fixed low addresses: where Weir's table is.
. "$(dirname "$0")/lib.sh"
need clisp
same clisp -q -x '(loop for i below 1000 sum (* i i))'
