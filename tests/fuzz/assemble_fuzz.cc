// Trees of call paths that a program has written over: whatever they say, a profile comes out that is sound, and can be written.
//
// Input: 16 bytes a node: its kind, why it ended, its parent, its image, its address.
#include <cstring>

#include "sample/assemble.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct Raw {
    uint8_t kind, end;
    uint16_t parent;
    uint8_t image, samples;
    uint16_t low;
    uint64_t offset;
  };
  static_assert(sizeof(Raw) == 16);
  static const std::vector<std::string> images = {"/proc/self/exe", "[vdso]", "[code written at run time]", "", "/none"};
  sample::Thread thread;
  for (; size >= sizeof(Raw); data += sizeof(Raw), size -= sizeof(Raw)) {
    Raw raw;
    memcpy(&raw, data, sizeof raw);
    sample::Node node;
    node.kind = static_cast<sample::Node::Kind>(raw.kind % 5);
    node.end = static_cast<rt::Stop>(raw.end);
    node.parent = raw.parent == UINT16_MAX ? sample::none : raw.parent % (thread.nodes.size() + 2);
    node.image = raw.image % 8;
    node.offset = raw.kind & 128 ? raw.offset : raw.low;  // mostly where code is
    node.samples = raw.samples;
    thread.nodes.push_back(node);
  }
  sample::Program program;
  program.images = images;
  program.threads = {thread, thread};
  profile::Profile p = sample::assemble({}, std::span(&program, 1));
  uint64_t sum = 0;
  for (const sample::Node& n : thread.nodes) sum += n.samples;
  for (const profile::Thread& t : p.threads) {
    CHECK(t.cycles == sum);
    uint64_t self = 0;
    for (const profile::FunctionCount& c : t.functions) {
      CHECK(c.function < p.functions.size() && c.self <= c.total && c.total <= sum);
      self += c.self;
    }
    CHECK(self == sum);
    for (uint32_t i = 0; i < t.contexts.size(); i++) {
      const profile::Context& c = t.contexts[i];
      CHECK(c.site < p.sites.size() && c.function < p.functions.size() && (c.parent == profile::none || c.parent < i));
    }
    for (const profile::BlockCount& c : t.blocks) CHECK(c.block < p.blocks.size());
  }
  return 0;
}
