// The call graph: of the whole run, below a virtual root, and around one function.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "view/queries.h"

namespace weir::view {

namespace {

// From the starts, and not by way of the root.
std::vector<bool> reached_otherwise(const Model& model, uint32_t root) {
  std::vector<bool> reached(model.functions().size());
  std::vector<uint32_t> walk;
  auto reach = [&](uint32_t f) {
    if (f == root || reached[f]) return;
    reached[f] = true;
    walk.push_back(f);
  };
  for (uint32_t i = 0; i < model.functions().size(); i++)
    if (model.functions()[i].root) reach(i);
  while (!walk.empty()) {
    uint32_t f = walk.back();
    walk.pop_back();
    for (uint32_t e : model.out(f)) reach(model.edges()[e].callee);
  }
  return reached;
}

// By call paths it is known what happened below a function.
Rooted by_paths(const Model& model, uint32_t root, const Paths::Below& below) {
  Rooted rooted;
  std::unordered_map<uint32_t, uint32_t> children;
  for (auto& [pair, figures] : below.calls) {
    auto caller = model.index_of(pair.first), callee = model.index_of(pair.second);
    if (!caller || !callee) continue;
    rooted.edges.push_back({*caller, *callee, figures.calls, figures.total, figures.before});
    if (caller != callee) children[pair.first]++;
  }
  for (auto& [id, figures] : below.functions) {
    std::optional<uint32_t> index = model.index_of(id);
    if (!index) continue;
    Function f = model.functions()[*index];
    f.root = *index == root;
    f.calls = figures.calls;
    f.self = figures.self;
    f.total = figures.total;
    if (f.before) f.before = {f.before->calls, figures.self_before, figures.before};
    f.children = children[id];
    rooted.functions.push_back(std::move(f));
  }
  std::ranges::sort(rooted.functions, {}, &Function::id);
  return rooted;
}

// Without paths: a function that all ways lead to by way of the root has its own figures. Of another nobody knows what came that
// way, but no more than the root's total; it is not shared out by callers, which would be a guess.
Rooted by_calls(const Model& model, uint32_t root) {
  Rooted rooted;
  const Function& whole = model.functions()[root];
  Cycles most = whole.total, most_before = whole.before ? whole.before->total : 0;
  std::vector<bool> otherwise = reached_otherwise(model, root), in(model.functions().size());
  std::vector<uint32_t> reached = {root};
  in[root] = true;
  for (size_t i = 0; i < reached.size(); i++) {
    Function f = model.functions()[reached[i]];
    bool at_most = otherwise[reached[i]];
    f.root = reached[i] == root;
    if (at_most) {
      rooted.bounded.insert(f.id);
      f.self = std::min(f.self, most);
      f.total = std::min(f.total, most);
      if (f.before)
        f.before = {f.before->calls, std::min(f.before->self, most_before), std::min(f.before->total, most_before)};
    }
    rooted.functions.push_back(std::move(f));
    for (uint32_t e : model.out(reached[i])) {
      Edge edge = model.edges()[e];
      if (at_most) {
        edge.total = std::min(edge.total, most);
        edge.before = std::min(edge.before, most_before);
      }
      rooted.edges.push_back(edge);
      if (!in[edge.callee]) in[edge.callee] = true, reached.push_back(edge.callee);
    }
  }
  return rooted;
}

}  // namespace

Result<std::optional<Rooted>> Queries::rooted(const Parameters& p, const Model& model) {
  std::optional<uint64_t> id = number_of(p, "root");
  std::optional<uint32_t> root = id ? model.index_of(*id) : std::nullopt;
  if (!root) return std::nullopt;
  TRY(std::shared_ptr<Paths> tree, paths(thread_of(p)));
  Paths::Below below = tree->below(model.functions()[*root].id);
  return below.functions.empty() ? by_calls(model, *root) : by_paths(model, *root, below);
}

void Queries::put_node(JsonWriter& json, const Function& f, const Model& model, const std::optional<Rooted>& rooted) const {
  json.begin_object();
  put(json, f, model.compared());
  json.member("children", uint64_t{f.children}).member("root", f.root);
  if (rooted && rooted->bounded.contains(f.id)) json.member("at_most", true);
  json.end_object();
}

void Queries::put_edges(JsonWriter& json, const std::vector<Edge>& edges, const Model& model,
                        const std::optional<Rooted>& rooted) const {
  json.key("edges").begin_array();
  for (const Edge& e : edges) {
    uint32_t caller = model.functions()[e.caller].id, callee = model.functions()[e.callee].id;
    json.begin_object().member("caller", uint64_t{caller}).member("callee", uint64_t{callee}).member("total", e.total);
    is_sampled_ ? json.key("calls").null() : json.member("calls", e.calls);
    if (model.compared()) json.member("before", e.before);
    if (rooted && rooted->bounded.contains(caller)) json.member("at_most", true);
    json.end_object();
  }
  json.end_array();
}

// The functions with the largest totals (with a root: of those below it), and the calls among them.
Result<> Queries::graph(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  TRY(std::optional<Rooted> below, rooted(p, *m));
  if (below) json.member("below", true);
  std::vector<const Function*> shown;
  for (const Function& f : below ? below->functions : m->functions()) shown.push_back(&f);
  json.member("functions", shown.size()).key("nodes").begin_array();
  auto size = [](const Function* f) { return std::max(f->total, f->before ? f->before->total : 0); };
  std::ranges::stable_sort(shown, std::ranges::greater(), size);
  if (shown.size() > most_graph_nodes) shown.resize(most_graph_nodes);
  std::vector<bool> in(m->functions().size());
  for (const Function* f : shown) {
    in[*m->index_of(f->id)] = true;
    put_node(json, *f, *m, below);
  }
  json.end_array();
  std::vector<Edge> edges;
  for (const Edge& e : below ? below->edges : m->edges())
    if (in[e.caller] && in[e.callee]) edges.push_back(e);
  put_edges(json, edges, *m, below);
  return {};
}

// A function with its callers and callees; with a root, as far as they are below it.
Result<> Queries::neighbours(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::optional<uint64_t> id = number_of(p, "of");
  std::optional<uint32_t> index = id ? m->index_of(*id) : std::nullopt;
  if (!index) return fail("the profile has no such function");
  TRY(std::optional<Rooted> below, rooted(p, *m));
  if (below) json.member("below", true);
  std::vector<Edge> out, into;
  if (below) {
    for (const Edge& e : below->edges) {
      if (e.caller == *index) out.push_back(e);
      else if (e.callee == *index) into.push_back(e);
    }
  } else {
    for (uint32_t e : m->out(*index)) out.push_back(m->edges()[e]);
    for (uint32_t e : m->into(*index))
      if (m->edges()[e].caller != *index) into.push_back(m->edges()[e]);
  }
  constexpr size_t most = 300;
  std::vector<Edge> edges;
  for (auto* list : {&out, &into}) {
    std::ranges::stable_sort(*list, std::ranges::greater(), &Edge::total);
    edges.insert(edges.end(), list->begin(), list->begin() + static_cast<ptrdiff_t>(std::min(list->size(), most)));
  }
  std::set<uint32_t> shown = {*index};
  for (const Edge& e : edges) shown.insert({e.caller, e.callee});
  json.member("functions", m->functions().size()).key("nodes").begin_array();
  for (const Function& f : below ? below->functions : m->functions())
    if (shown.contains(*m->index_of(f.id))) put_node(json, f, *m, below);
  json.end_array();
  put_edges(json, edges, *m, below);
  return {};
}

}  // namespace weir::view
