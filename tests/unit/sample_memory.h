// A thread's memory for samples: what the handler has, and Weir.
#pragma once

#include <vector>

#include "sample/call_tree.h"

namespace weir::test {

struct Memory {
  explicit Memory(uint32_t frames = 16384, uint32_t nodes = 1 << 16)
      : maps(rt::Trace::bytes_for(frames) / 8),
        words(rt::words_of(frames)),
        nodes(sample::CallTree::bytes_for(nodes, frames) / 8 + 1),
        trace(rt::Trace::make(maps.data(), frames)),
        tree(sample::CallTree::make(this->nodes.data(), nodes, frames)) {}

  template <class Reader>
  rt::Sample sample(const rt::Code& code, const rt::Stack& stack, const rt::State& top, const rt::Options& options,
                    Reader& reader) {
    rt::Sample s = rt::restore(trace, code, stack, top, options, reader);
    rt::Records records(queue, words.data(), words.size());
    node = sample::no_node;
    if (!records.has_room(s.depth)) return s;
    records.put(s, top.pc, 1);
    records.take(read, [&](const auto& r, auto* callers) { node = tree.take(r, callers); });
    return s;
  }

  std::vector<uint64_t> maps, words, nodes;
  rt::Trace trace;
  sample::CallTree tree;
  rt::Records::Queue queue = {};
  uint64_t read = 0;
  uint32_t node = 0;  // of the last sample; no_node: it left no record
};

}  // namespace weir::test
