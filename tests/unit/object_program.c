// What object_placement_test.cc compiles: calls, pointers to functions, tables of jumps, data of its own, tail calls, flags. Each function
// has the same type.
typedef long Function(long, long, long);

static long calls_of[4];
long fib(long n, long b, long c) { return n < 2 ? n : fib(n - 1, b, c) + fib(n - 2, b, c); }

long gcd(long a, long b, long c) {
  while (b) {
    long t = a % b;
    a = b, b = t, c++;
  }
  return a + 1000 * c;
}

// A table of jumps.
long machine(long program, long a, long b) {
  for (int step = 0; step < 64; step++, program = program >> 3 | (program & 7) << 57) switch (program & 7) {
      case 0: a += b; break;
      case 1: a ^= b * 3; break;
      case 2: b -= a; break;
      case 3: a = (long)((unsigned long)a << 1); break;
      case 4: b = a >> 2; break;
      case 5: a = ~a; break;
      case 6: b ^= 0x55; break;
      default: a -= step;
    }
  return a * 31 + b;
}

static long twice(long a, long b, long c) { return calls_of[0]++, 2 * a + b - c; }
static long plus(long a, long b, long c) { return calls_of[1]++, a + 7 * b + c; }
static long minus(long a, long b, long c) { return calls_of[2]++, a - 5 * b + c; }
static Function* const functions[] = {twice, plus, minus, gcd};

// Indirect calls, and an indirect tail call.
long dispatch(long n, long a, long b) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += functions[(a + i) & 3](i + 1, b + i, sum & 15);
  return functions[n & 3](sum, b & 15, 1);
}

static int less(const void* a, const void* b) { return *(const int*)a < *(const int*)b; }
static __attribute__((noinline)) void sort(int* p, long n, int (*before)(const void*, const void*)) {
  for (long i = 1; i < n; i++)
    for (long k = i; k > 0 && before(p + k, p + k - 1); k--) {
      int t = p[k];
      p[k] = p[k - 1], p[k - 1] = t;
    }
}
long sorted(long seed, long b, long c) {
  int values[50];
  unsigned long x = (unsigned long)seed;
  for (int i = 0; i < 50; i++) values[i] = (int)((x = x * 6364136223846793005ul + 1442695040888963407ul) >> 40);
  sort(values, 50, less);
  long hash = b + c;
  for (int i = 0; i < 50; i++) hash = (long)((unsigned long)hash * 33) ^ values[i];
  return hash;
}

static const char text[] = "a weir is a dam that measures a river";
double weights[] = {0.5, 1.25, -3, 7};
long hashed(long a, long b, long c) {
  double sum = 0;
  long h = a;
  for (int i = 0; text[i]; i++) h = h * 131 + text[i], sum += weights[(i + b) & 3] * i;
  weights[c & 3] += 1;
  return h + (long)sum;
}

// Flags and the stack, as probes must not see them change; popf, which the engine follows.
long flags(long a, long b, long c) {
  long carry, all;
  __asm__ volatile("add %2, %1\n\tsbb %0, %0" : "=r"(carry), "+r"(a) : "r"(b));
  __asm__ volatile("cmp %1, %2\n\tpushf\n\tpopf\n\tpushf\n\tpop %0\n\tjrcxz 1f\n\tlea 1(%0), %0\n1:"
                   : "=r"(all)
                   : "r"(a), "r"(c), "c"(b & 1));
  __asm__ volatile("cld");
  return carry * 5 + a + (all & 0xcd5);
}

static __attribute__((noinline)) long odd(long n, long b, long c);
static __attribute__((noinline)) long even(long n, long b, long c) { return n <= 0 ? b + c : odd(n - 1, b ^ n, c + 1); }
static long odd(long n, long b, long c) { return n <= 0 ? b - c : even(n - 1, b + n, c + 2); }
long parity(long n, long b, long c) { return even(n & 63, b, c) + calls_of[n & 3]; }
