// The functions and calls of the selected threads, in memory: what every list and graph of the page is cut from. A hundred thousand
// functions are some fifty megabytes and half a second.
//
// With a run before, each has the figures of both; functions that only ran then have ids behind all others.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "store/compare.h"
#include "store/reader.h"

namespace weir::view {

using store::Cycles;

struct Before {
  uint64_t calls = 0;
  Cycles self = 0, total = 0;
  std::string name = "", image = "";  // where it had another
};

// A run to compare with: its functions are matched with those of the run now, and its times multiplied by `scale`.
struct Comparison {
  const store::Match& match;
  double scale = 1;
  const store::Reader& before() const { return *match.before.runs.front(); }
};

struct Function : store::FunctionRow {  // `id` is that of the page
  std::optional<Before> before;
  bool ran = true;         // now; else only before
  bool root = false;       // the kernel began here, or nobody is known to have called it
  bool recursive = false;  // it called itself, or something that called it
  uint32_t children = 0;   // others that it called
};

// Who called whom, over all call sites; by index.
struct Edge {
  uint32_t caller = 0, callee = 0;
  uint64_t calls = 0;
  Cycles total = 0, before = 0;
  bool is_tail = true;  // every call: the caller had ended
};

class Model {
 public:
  static Result<Model> load(const store::Reader& now, const Comparison* compared);

  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<Edge>& edges() const { return edges_; }                             // by caller
  const std::vector<uint32_t>& out(uint32_t function) const { return out_[function]; }  // edges, by index
  const std::vector<uint32_t>& into(uint32_t function) const { return into_[function]; }
  std::optional<uint32_t> index_of(uint64_t id) const;
  bool compared() const { return compared_; }
  uint64_t calls() const { return calls_; }  // of all functions
  // The function of the run before with this id, as the page names it.
  uint32_t id_of_before(uint32_t id) const;
  // And back: of a function that only ran before.
  uint32_t before_of_id(uint32_t id) const { return id - first_before_; }

  struct Order {
    std::string column = "self";
    bool ascending = false;
    std::string filter;
    bool regex = false;
    bool operator==(const Order&) const = default;
  };
  // Indices of the functions that match, in this order. Good until the next call.
  Result<const std::vector<uint32_t>*> ordered(const Order& order);

 private:
  Result<> add_functions(const store::Reader& now, const Comparison* compared);
  Result<> add_calls(const store::Reader& reader, bool of_before);
  void link();
  void mark_recursion();

  bool compared_ = false;
  uint64_t calls_ = 0;
  double scale_ = 1;
  uint32_t first_before_ = 0;
  std::vector<Function> functions_;
  std::vector<Edge> edges_;
  std::unordered_map<uint64_t, uint32_t> edge_of_;  // caller and callee
  std::vector<std::vector<uint32_t>> out_, into_;
  std::unordered_map<uint32_t, uint32_t> index_, page_id_of_before_;
  std::optional<Order> last_order_;
  std::vector<uint32_t> last_;
};

}  // namespace weir::view
