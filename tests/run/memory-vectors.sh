# Masked moves, gathers and the extended state, as --tool=memory counts them, equal those of a single-stepped native run.
. "$(dirname "$0")/lib.sh"
need_cpu avx2
program() {
  compile "$1.c" -O1 "${@:2}" <<'C'
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
static int table[256];
int main() {
  int *heap = malloc(4096), sum = 0;
  __m256i mask = _mm256_setr_epi32(-1, 0, -1, -1, 0, 0, 0, -1), index = _mm256_setr_epi32(1, 200, 33, 4, 5, 60, 7, 80);
  for (int i = 0; i < 256; i++) table[i] = i, heap[i] = 2 * i;
  __m256i v = _mm256_maskload_epi32(table + 3, mask);
  _mm256_maskstore_epi32(heap + 9, mask, v);
  v = _mm256_add_epi32(v, _mm256_mask_i32gather_epi32(v, heap, index, mask, 4));
  v = _mm256_add_epi32(v, _mm256_i32gather_epi32(table, index, 4));
  _mm_maskmoveu_si128(_mm256_castsi256_si128(v), _mm256_castsi256_si128(mask), (char *)heap + 100);
#ifdef __AVX512F__
  __mmask16 k = (__mmask16)(table[77] * 811);
  __m512i w = _mm512_mask_loadu_epi32(_mm512_setzero_si512(), k, heap + 1);
  _mm512_mask_compressstoreu_epi32(table, k, w);
  w = _mm512_maskz_expandloadu_epi32(k, heap + 40);
  _mm512_mask_i32scatter_epi32(heap, k, _mm512_setr_epi32(1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47), w, 4);
  w = _mm512_mask_i32gather_epi32(w, k, _mm512_set1_epi32(9), table, 4);
  _mm512_mask_storeu_epi8(heap + 300, (__mmask64)k * 77777, w);
#endif
  unsigned char *area = aligned_alloc(64, 16384);
  asm volatile("xsave (%0)" : : "r"(area), "a"(7), "d"(0) : "memory");
  asm volatile("xsave (%0)" : : "r"(area), "a"(0xe7), "d"(0) : "memory");
  asm volatile("fxsave (%0)" : : "r"(area) : "memory");
  for (int i = 0; i < 256; i++) sum += table[i] ^ heap[i];
  int lanes[8]; _mm256_storeu_si256((__m256i *)lanes, v);
  printf("%d %d\n", sum, lanes[0] + lanes[7]);
}
C
}
program avx2 -mavx2
accesses "$T/avx2"
grep -qw avx512bw /proc/cpuinfo || exit 0
program avx512 -mavx512f -mavx512bw -mavx512vl
accesses "$T/avx512"
