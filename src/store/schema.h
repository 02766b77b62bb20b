// The tables of a profile. docs/store.md explains them; a change here is a new `schema_version`, and a change there.
#pragma once

#include <cstdint>

namespace weir::store {

inline constexpr int application_id = 0x57656972;  // "Weir": what `file` and PRAGMA application_id see
inline constexpr int schema_version = 6;
inline constexpr int64_t most = int64_t{1} << 60;  // no time or count of a run is larger
inline constexpr const char* exact_kind = "exact profile";
inline constexpr const char* sampled_kind = "sampled profile";

extern const char* const create_tables;
extern const char* const create_indices;

}  // namespace weir::store
