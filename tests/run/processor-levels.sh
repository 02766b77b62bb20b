# WEIR_PROCESSOR: levels that do not exist, or that the machine lacks, are refused with what to do; the others run. (run-v2.NAME and its kin do more.)
. "$(dirname "$0")/lib.sh"
has() { local f; for f; do grep -qw -- "$f" /proc/cpuinfo || return 1; done; }
for value in v1 v5 4 haswell V3 'v3 '; do
  WEIR_PROCESSOR=$value expect_fail 125 'no such level; it is v2, v3 or v4' "$WEIR" run -- true
  WEIR_PROCESSOR=$value expect_fail 125 'no such level' "$WEIR" profile -o "$T/no.weir" -- true
  WEIR_PROCESSOR=$value expect_fail 125 'no such level' "$WEIR" sample -o "$T/no.weir" -- true
done
[[ ! -e $T/no.weir ]] || fail "a profile of what did not run"
for level in v2:sse4_2 v3:avx2 v4:avx512vl; do
  if has "${level#*:}"; then WEIR_PROCESSOR=${level%:*} TOOLS='none icount profile sample' same ls /
  else WEIR_PROCESSOR=${level%:*} expect_fail 125 "no more than x86-64-v.; take a lower level, or none" "$WEIR" run -- true; fi
done
WEIR_PROCESSOR='' same ls /
