# Several threads write code and run it: rewritten in place, flipped between writable and executable, mapped twice, at addresses that are used again.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/writers.c" "$T/writers"
same "$T/writers" 200
OPTIONS=--paths=full profile "$T/writers" 50
