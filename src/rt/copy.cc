// What the compiler calls without being asked.

#include <stddef.h>

extern "C" {

void* memcpy(void* to, const void* from, size_t n) {
  void* result = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  return result;
}

void* memset(void* to, int value, size_t n) {
  void* result = to;
  asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
  return result;
}

}  // extern "C"
