#include "unwind/table.h"

#include <algorithm>

#include "base/cache.h"

namespace weir::unwind {

bool is_sound(std::span<const std::byte> bytes) {
  if (!rt::is_table(bytes.data(), bytes.size())) return false;
  const rt::TableHead& head = *reinterpret_cast<const rt::TableHead*>(bytes.data());
  std::span first(rt::first_rows(head), head.pages + size_t{1});
  std::span rules(rt::rules_of(head), head.rule_count);
  std::span rows(rt::rows_of(head), head.row_count);
  if (checksum_of(bytes.subspan(sizeof head)) != head.checksum || first.back() != rows.size()) return false;
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    if (first[i] >= first[i + 1] || first[i + 1] > rows.size() || rows[first[i]].offset != 0) return false;
    for (uint32_t r = first[i]; r + 1 < first[i + 1]; ++r)
      if (rows[r].offset >= rows[r + 1].offset) return false;
  }
  return std::ranges::all_of(rows, [&](rt::Row r) { return r.rule < rules.size() && r.offset < 1 << rt::page_shift; }) &&
         std::ranges::all_of(rules, [](const rt::Rule& r) {
           return r.kind < rt::Rule::KindCount && r.rbp < rt::Rule::RbpCount && r.reg < 16;
         });
}

Result<std::shared_ptr<const Table>> table_of(const elf::Image& image, const DebugFrame& debug_frame) {
  constexpr uint64_t version = 0x33646e7775726557;  // "Weruwnd3"
  elf::Kind kind{debug_frame ? "unwind-debug" : "unwind", version};
  // (It is what compile() has made, and is_sound(), by its checksum.)
  if (auto kept = elf::read_kept(image, kind); kept && rt::is_table(kept->bytes.data(), kept->bytes.size()))
    return std::make_shared<const Table>(std::move(*kept));
  TRY(std::vector<std::byte> made, compile(image, debug_frame ? debug_frame() : std::vector<std::byte>()));
  elf::keep(image, kind, made);
  return std::make_shared<const Table>(std::move(made));
}

}  // namespace weir::unwind
