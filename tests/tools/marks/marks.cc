// A tool for tests of regions, and of what is told of system calls: see marks.h.

#include "marks.h"

#include <unistd.h>

#include <map>

#include "driver.h"
#include "rt/told_calls.h"

namespace weir::tests {
namespace {

using instrument::Op;
using instrument::RegionData;
using instrument::Temp;
using instrument::ToolRegion;

constexpr ToolRegion regions[MARKS_REGIONS] = {
    {.name = "marks", .size = uint64_t{16} << 40, .alignment = uint64_t{1} << 30},
    {.name = "what is shared", .size = 1 << 20, .at_fork = ToolRegion::AtFork::Share},
    {.name = "the log", .size = uint64_t{16} << 30, .at_fork = ToolRegion::AtFork::Share, .is_visible = true},
    {.name = "a log of its own", .size = uint64_t{16} << 30, .is_visible = true},
    {.name = "what is low", .size = 64 << 10, .is_low = true},
};

// Of the whole run: what was told, and what each process left of the regions that Weir sees.
struct Left {
  uint32_t pid;
  uint64_t first, second, touched;  // its first two words, and how many bytes of it are no hole
  bool is_last;
};
std::map<uint32_t, std::vector<Left>> left;
MarksCounts counts{};

class Marks : public instrument::Tool {
 public:
  std::unique_ptr<Tool> copy() const override { return std::make_unique<Marks>(*this); }
  instrument::Services services() const override { return {.system_calls = true, .regions = regions}; }
  // What is planned counts the functions that are entered: in two regions, the address of one of which has 32 bits.
  void plan(const instrument::Subject& s, instrument::Counters&, instrument::Plan& plan) override {
    for (uint32_t number : {MARKS_LOG_FILE, MARKS_LOW}) {
      auto begin = static_cast<int64_t>(s.regions[number].begin.value);
      plan.insert(instrument::Where::Entry, 0,
                  {{.kind = Op::Set, .temp = Temp::B, .value = begin},
                   {.kind = Op::Load, .temp = Temp::A, .other = Temp::B, .value = 8},
                   {.kind = Op::Add, .temp = Temp::A, .value = 1},
                   {.kind = Op::Store, .temp = Temp::A, .other = Temp::B, .value = 8}});
    }
  }
  void collect(const instrument::ThreadData& thread) override {
    const auto& calls = *reinterpret_cast<const rt::ToldCalls*>(thread.memory + rt::told_calls_offset);
    counts.told += calls.told, counts.unknown += calls.unknown, counts.without_begin += calls.without_begin;
  }
  void collect_region(const RegionData& region) override {
    uint64_t words[2] = {}, touched = 0;
    if (pread(region.file, words, sizeof words, 0) != sizeof words) say("region {}: it cannot be read", region.number);
    for (off_t at = 0; (at = lseek(region.file, at, SEEK_DATA)) >= 0;) {
      off_t end = lseek(region.file, at, SEEK_HOLE);
      touched += static_cast<uint64_t>(end - at);
      at = end;
    }
    left[region.number].push_back({region.pid, words[0], words[1], touched, region.is_last});
  }
};

std::string json() {
  std::string text = fmt::format(R"({{"told": {}, "unknown": {}, "without_begin": {}, "regions": {{)", counts.told,
                                 counts.unknown, counts.without_begin);
  for (auto& [number, all] : left) {
    text += fmt::format(R"({}"{}": [)", text.back() == '{' ? "" : ", ", number);
    for (const Left& l : all)
      text += fmt::format(R"({}{{"pid": {}, "first": {}, "second": {}, "touched": {}, "last": {}}})",
                          text.back() == '[' ? "" : ", ", l.pid, l.first, l.second, l.touched, l.is_last);
    text += "]";
  }
  return text + "}}\n";
}

}  // namespace
}  // namespace weir::tests

int main(int argc, char** argv) {
  using namespace weir::tests;
  return run_with({"marks", [] { return std::make_unique<Marks>(); }, json}, argc, argv);
}
