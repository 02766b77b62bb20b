# The state of avx512: all zmm registers hold their values across calls, system calls and signals.
. "$(dirname "$0")/lib.sh"
need_cpu avx512bw
build "$PROGRAMS/vectors.c" "$T/vectors" -DREG=zmm -DCOUNT=32 -DBYTES=64 -DMOVE=vmovdqu64
same "$T/vectors"
