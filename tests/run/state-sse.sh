# The state of sse: all xmm registers hold their values across calls, system calls and signals.
. "$(dirname "$0")/lib.sh"
need_cpu sse2
build "$PROGRAMS/vectors.c" "$T/vectors" -DREG=xmm -DCOUNT=16 -DBYTES=16 -DMOVE=movdqu
same "$T/vectors"
