// Where the regions of a tool are put: in what is free, by size, alignment and reach; never over what is Weir's.

#include "engine/regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt/abi.h"

namespace weir::engine {
namespace {

using instrument::ToolRegion;
constexpr uint64_t GiB = uint64_t{1} << 30, TiB = GiB << 10;

AppRange range(uint64_t begin, uint64_t end) { return {{begin}, {end}}; }
// As the kernel lays out a program.
const std::vector<AppRange> usual = {range(0x5555'5555'4000, 0x5555'5560'0000), range(0x7fff'f7d0'0000, 0x7fff'f7ff'f000),
                                     range(0x7fff'f000'0000, 0x7fff'ffff'f000)};

std::vector<AppRange> placed(std::vector<ToolRegion> regions, const std::vector<AppRange>& taken) {
  auto places = place_regions(regions, taken);
  EXPECT_TRUE(places) << (places ? "" : places.error().what);
  if (!places) return {};
  for (size_t i = 0; i < places->size(); i++) {
    AppRange p = (*places)[i];
    EXPECT_EQ(p.size(), regions[i].size);
    EXPECT_EQ(p.begin.value % regions[i].alignment, 0u);
    for (const AppRange& t : taken) EXPECT_FALSE(t.overlaps(p));
    for (size_t k = 0; k < i; k++) EXPECT_FALSE(whole(regions[k], (*places)[k]).overlaps(whole(regions[i], p)));
    EXPECT_FALSE(p.overlaps(range(rt::far_arenas_begin, rt::high_table_base + rt::table_size)));
    EXPECT_FALSE(p.overlaps(range(rt::table_base, rt::table_base + rt::table_size)));
    EXPECT_TRUE(!regions[i].is_low || p.end.value <= 2 * GiB);
  }
  return *places;
}

TEST(Regions, LieBelowWhatIsWeirs) {
  auto p = placed({{.name = "a", .size = 16 * TiB}, {.name = "b", .size = 4096}}, usual);
  EXPECT_EQ(p[0].end.value, rt::far_arenas_begin);
  EXPECT_EQ(p[1].end, guard_of(p[0]).begin);
}
TEST(Regions, AreAligned) {
  auto p = placed({{.name = "a", .size = 4096},
                   {.name = "b", .size = TiB, .alignment = TiB},
                   {.name = "c", .size = GiB, .alignment = GiB}},
                  usual);
  EXPECT_GE(p[0].begin, p[1].end);
  EXPECT_GE(p[2].begin, p[1].end);  // what is left above is used
  EXPECT_LE(p[2].end, p[0].begin);
}
TEST(Regions, AreLow) {
  auto p = placed({{.name = "a", .size = 64 << 10, .is_low = true}, {.name = "b", .size = GiB, .is_low = true}}, usual);
  EXPECT_EQ(p[0].end.value, rt::table_base);
}
TEST(Regions, LieInGaps) {
  std::vector<AppRange> taken = usual;
  taken.push_back(range(rt::far_arenas_begin - 2 * TiB, rt::far_arenas_begin - TiB));
  taken.push_back(range(40 * TiB, rt::far_arenas_begin - 2 * TiB));
  auto p = placed({{.name = "a", .size = TiB - 4096}, {.name = "b", .size = TiB}, {.name = "c", .size = 30 * TiB}}, taken);
  EXPECT_EQ(p[0].end.value, rt::far_arenas_begin);
  EXPECT_EQ(p[1].end.value, 40 * TiB);
}
// A range inside another, and across Weir's.
TEST(Regions, KeepOffWhatOverlaps) {
  std::vector<AppRange> taken = {range(10 * TiB, 60 * TiB), range(20 * TiB, 21 * TiB),
                                 range(59 * TiB, rt::far_arenas_begin + TiB)};
  auto p = placed({{.name = "a", .size = 9 * TiB}, {.name = "b", .size = TiB}}, taken);
  EXPECT_EQ(p[0].end.value, 10 * TiB);
}
TEST(Regions, LieAboveWhereNothingElseIsLeft) {
  auto p = placed({{.name = "a", .size = 16 * TiB}}, {range(4096, rt::far_arenas_begin)});
  EXPECT_GE(p[0].begin.value, rt::high_table_base);
}
TEST(Regions, AreRefused) {
  auto none = place_regions(std::vector<ToolRegion>{{.name = "a", .size = 100 * TiB}}, usual);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "it leaves no room for a (104,857,600 MiB)");
  EXPECT_FALSE(place_regions(std::vector<ToolRegion>{{.name = "a", .size = 4096, .is_low = true}}, {range(0, 2 * GiB)}));
  EXPECT_FALSE(place_regions(std::vector<ToolRegion>{{.name = "a", .size = 2 * GiB, .is_low = true}}, usual));
}

TEST(Regions, AreCopiedWithoutTheirHoles) {
  std::vector<ToolRegion> regions = {{.name = "a", .size = 16 * TiB}, {.name = "b", .size = 16 * TiB, .is_visible = true}};
  auto files = create_files(regions);
  ASSERT_TRUE(files);
  EXPECT_EQ((*files)[0], nullptr);
  int file = (*files)[1]->get();
  for (uint64_t at : {uint64_t{0}, 3 * TiB + 5000, 16 * TiB - 3})
    EXPECT_EQ(pwrite(file, "abc", 3, static_cast<off_t>(at)), 3);
  auto copy = copy_file(regions[1], file);
  ASSERT_TRUE(copy);
  EXPECT_EQ(pwrite(file, "xyz", 3, 0), 3);
  char text[4] = "";
  for (uint64_t at : {uint64_t{0}, 3 * TiB + 5000, 16 * TiB - 3}) {
    EXPECT_EQ(pread((*copy)->get(), text, 3, static_cast<off_t>(at)), 3);
    EXPECT_STREQ(text, "abc");
  }
  struct stat st;
  ASSERT_EQ(fstat((*copy)->get(), &st), 0);
  EXPECT_EQ(st.st_blocks, 3 * 8);
}

TEST(Regions, CountForLimits) {
  std::vector<ToolRegion> regions = {{.name = "a", .size = TiB},
                                     {.name = "b", .size = 2 * TiB, .at_fork = ToolRegion::AtFork::Share},
                                     {.name = "c", .size = 4 * TiB, .is_visible = true}};
  EXPECT_EQ(size_of(regions), 7 * TiB + 4096);
  EXPECT_EQ(map_flags_of(regions[0]) & (MAP_PRIVATE | MAP_GROWSDOWN), MAP_PRIVATE | MAP_GROWSDOWN);
  EXPECT_TRUE(map_flags_of(regions[1]) & MAP_ANONYMOUS);
  EXPECT_FALSE(map_flags_of(regions[2]) & MAP_ANONYMOUS);
}

}  // namespace
}  // namespace weir::engine
