# The state of avx2: all ymm registers hold their values across calls, system calls and signals.
. "$(dirname "$0")/lib.sh"
need_cpu avx2
build "$PROGRAMS/vectors.c" "$T/vectors" -DREG=ymm -DCOUNT=16 -DBYTES=32 -DMOVE=vmovdqu
same "$T/vectors"
