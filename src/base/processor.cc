#include "base/processor.h"

#include <cpuid.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <optional>

namespace weir {

namespace {

constexpr const char* variable = "WEIR_PROCESSOR";
std::optional<Processor> chosen;

int highest_level() {
  if (__builtin_cpu_supports("x86-64-v4")) return 4;
  if (__builtin_cpu_supports("x86-64-v3")) return 3;
  return __builtin_cpu_supports("x86-64-v2") ? 2 : 1;
}

uint32_t find_high_zmm() {
  if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) return 0;
  constexpr uint32_t state_leaf = 13, high_zmm = 7;
  uint32_t size = 0, offset = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(state_leaf, high_zmm, &size, &offset, &ecx, &edx) && size == 16 * 64 ? offset : 0;
}

bool find_protection_keys() {
  constexpr uint32_t feature_leaf = 7, in_use = 1u << 4;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(feature_leaf, 0, &eax, &ebx, &ecx, &edx) && (ecx & in_use);
}

std::vector<StateComponent> find_state() {
  constexpr uint32_t state_leaf = 13, os_uses_xsave = 1u << 27;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & os_uses_xsave)) return {};
  uint32_t low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  uint64_t in_use = uint64_t{high} << 32 | low;
  std::vector<StateComponent> all;
  for (uint8_t number = 2; number < 63; number++)
    if (uint32_t size, offset; (in_use >> number & 1) && __get_cpuid_count(state_leaf, number, &size, &offset, &ecx, &edx))
      all.push_back({number, offset + size});
  std::ranges::sort(all, {}, &StateComponent::end);
  return all;
}

}  // namespace

Result<Processor> processor_of_level(std::string_view level) {
  constexpr std::array<std::string_view, 3> levels{"v2", "v3", "v4"};
  int wanted = 0;
  for (int i = 0; i < 3; i++)
    if (level == levels[i]) wanted = 2 + i;
  if (!wanted && !level.empty()) return fail("{}={}: no such level; it is v2, v3 or v4", variable, level);
  if (wanted > highest_level())
    return fail("{}={}: this processor has no more than x86-64-v{}; take a lower level, or none", variable, level,
                highest_level());
  constexpr unsigned long hwcap2_fsgsbase = 2;
  Processor p;
  if (wanted != 2) p.has_fsgsbase = (getauxval(AT_HWCAP2) & hwcap2_fsgsbase) != 0;
  if (!wanted || wanted == 4) p.high_zmm_offset = find_high_zmm();
  p.has_wide_compares = p.high_zmm_offset && __builtin_cpu_supports("avx512bw");
  p.has_protection_keys = find_protection_keys();
  p.state = find_state();
  return p;
}

Result<> choose_processor() {
  const char* level = getenv(variable);
  TRY(chosen, processor_of_level(level ? level : ""));
  return {};
}

const Processor& processor() {
  static const Processor all = *processor_of_level("");
  return chosen ? *chosen : all;
}

}  // namespace weir
