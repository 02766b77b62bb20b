# Rep movs, stos, lods, scas and cmps of every width, with counts from none to many, both directions.
. "$(dirname "$0")/lib.sh"
compile strings.c <<'C'
#include "posix.h"
static unsigned char from[20000], to[20000];
static uint64_t sum; struct state { uint64_t rax, rcx, rsi, rdi, flags; };
#define ONE(name, text, width) static void name(struct state *s) { \
  asm volatile("push %5; popf; " text "; pushf; pop %4; cld" : "+a"(s->rax), "+c"(s->rcx), "+S"(s->rsi), "+D"(s->rdi), "=r"(s->flags) : "r"(s->flags) : "memory", "cc"); }
#define WIDTHS(name, text) ONE(name##b, text "b", 1) ONE(name##w, text "w", 2) ONE(name##l, text "l", 4) ONE(name##q, text "q", 8)
WIDTHS(movs, "rep movs") WIDTHS(stos, "rep stos") WIDTHS(lods, "rep lods") WIDTHS(scase, "repe scas") WIDTHS(scasn, "repne scas")
WIDTHS(cmpse, "repe cmps") WIDTHS(cmpsn, "repne cmps") WIDTHS(once, "movs")
ONE(doubled, ".byte 0x67; rep stosb", 1) ONE(other, "repne movsb", 1)
static void (*const all[])(struct state *) = {movsb, movsw, movsl, movsq, stosb, stosw, stosl, stosq, lodsb, lodsw, lodsl, lodsq, scaseb, scasew, scasel, scaseq,
  scasnb, scasnw, scasnl, scasnq, cmpseb, cmpsew, cmpsel, cmpseq, cmpsnb, cmpsnw, cmpsnl, cmpsnq, onceb, oncew, oncel, onceq, other};
int main() {
  static const int counts[] = {0, 1, 2, 7, 8, 63, 64, 65, 500, 1200};
  for (int f = 0; f < sizeof all / sizeof *all; f++) {
    for (int c = 0; c < 10; c++) for (int backward = 0; backward < 2; backward++) for (int equal = 0; equal < 3; equal++) {
      for (int i = 0; i < sizeof from; i++) from[i] = equal ? 5 : i * 7 >> 3, to[i] = equal == 1 ? 5 : i;
      from[10300] = 9;
      struct state s = {0x0505050505050505, counts[c], (uint64_t)from + 10000 + c, (uint64_t)to + 10000, backward ? 0x602 : 0x202};
      all[f](&s);
      sum = mix(mix(mix(mix(mix(sum, s.rax), s.rcx), s.rsi - (uint64_t)from), s.rdi - (uint64_t)to), s.flags);
      for (int i = 0; i < sizeof to; i += 8) sum = mix(sum, *(uint64_t *)(to + i));
    }
    printf("%d %lx\n", f, sum);
  }
  char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  struct state s = {'x', 100, 0, (uint64_t)low, 0x202};
  doubled(&s);
  printf("%ld %ld %.3s %ld\n", s.rcx, s.rdi - (uint64_t)low, low, strlen(low));
}
C
same "$T/strings"
