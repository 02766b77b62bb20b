// The call graph: of the whole run, below a virtual root, and around one function.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "view/queries.h"

namespace weir::view {

void Queries::put_node(JsonWriter& json, const Function& f, bool compared) const {
  json.begin_object();
  put(json, f, compared);
  json.member("children", uint64_t{f.children}).member("root", f.root).end_object();
}

void Queries::put_edges(JsonWriter& json, const Model& model, const std::vector<Edge>& edges) const {
  json.key("edges").begin_array();
  for (const Edge& e : edges) {
    json.begin_object().member("caller", uint64_t{model.functions()[e.caller].id});
    json.member("callee", uint64_t{model.functions()[e.callee].id}).member("total", e.total);
    is_sampled_ ? json.key("calls").null() : json.member("calls", e.calls);
    if (model.compared()) json.member("before", e.before);
    json.end_object();
  }
  json.end_array();
}

// With call paths it is known what happened below a function. Without, what it leads to is shown with the times of the whole run,
// cut at the root's own: more cannot have gone through it. (They are not shared out by callers: that would be a guess.)
Result<Queries::Rooted> Queries::below(const Parameters& p, const Model& model, uint32_t root) {
  Rooted rooted;
  auto at_root = [&](Function f) {
    f.root = f.id == model.functions()[root].id;
    return f;
  };
  TRY(std::shared_ptr<Paths> tree, paths(thread_of(p)));
  Paths::Below found = tree->below(model.functions()[root].id);
  rooted.measured = !found.functions.empty();
  if (rooted.measured) {
    std::unordered_map<uint32_t, uint32_t> children;
    for (auto& [pair, figures] : found.calls) {
      auto caller = model.index_of(pair.first), callee = model.index_of(pair.second);
      if (!caller || !callee) continue;
      rooted.edges.push_back({*caller, *callee, figures.calls, figures.total, figures.before});
      if (caller != callee) children[pair.first]++;
    }
    for (auto& [id, figures] : found.functions) {
      std::optional<uint32_t> index = model.index_of(id);
      if (!index) continue;
      Function f = at_root(model.functions()[*index]);
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
  const Function& whole = model.functions()[root];
  Cycles before = whole.before ? whole.before->total : 0;
  std::vector<uint32_t> reached = {root};
  std::vector<bool> in(model.functions().size());
  in[root] = true;
  for (size_t i = 0; i < reached.size(); i++) {
    Function f = at_root(model.functions()[reached[i]]);
    f.self = std::min(f.self, whole.total);
    f.total = std::min(f.total, whole.total);
    if (f.before) f.before = {f.before->calls, std::min(f.before->self, before), std::min(f.before->total, before)};
    rooted.functions.push_back(std::move(f));
    for (uint32_t e : model.out(reached[i])) {
      Edge edge = model.edges()[e];
      edge.total = std::min(edge.total, whole.total);
      edge.before = std::min(edge.before, before);
      rooted.edges.push_back(edge);
      if (!in[edge.callee]) in[edge.callee] = true, reached.push_back(edge.callee);
    }
  }
  return rooted;
}

// The functions with the largest totals (with a root: of those below it), and the calls among them.
Result<> Queries::graph(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::optional<Rooted> rooted;
  std::optional<uint64_t> root = number_of(p, "root");
  if (std::optional<uint32_t> start = root ? m->index_of(*root) : std::nullopt) {
    TRY(rooted, below(p, *m, *start));
    json.member("measured", rooted->measured);
  }
  std::vector<const Function*> shown;
  for (const Function& f : rooted ? rooted->functions : m->functions()) shown.push_back(&f);
  json.member("functions", shown.size()).key("nodes").begin_array();
  auto size = [](const Function* f) { return std::max(f->total, f->before ? f->before->total : 0); };
  std::ranges::stable_sort(shown, std::ranges::greater(), size);
  if (shown.size() > most_graph_nodes) shown.resize(most_graph_nodes);
  std::vector<bool> in(m->functions().size());
  for (const Function* f : shown) {
    in[*m->index_of(f->id)] = true;
    put_node(json, *f, m->compared());
  }
  json.end_array();
  std::vector<Edge> edges;
  for (const Edge& e : rooted ? rooted->edges : m->edges())
    if (in[e.caller] && in[e.callee]) edges.push_back(e);
  put_edges(json, *m, edges);
  return {};
}

// A function with its callers and callees; with a root, as far as they are below it.
Result<> Queries::neighbours(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::optional<uint64_t> id = number_of(p, "of"), root = number_of(p, "root");
  std::optional<uint32_t> index = id ? m->index_of(*id) : std::nullopt;
  if (!index) return fail("the profile has no such function");
  std::optional<Rooted> rooted;
  if (std::optional<uint32_t> start = root ? m->index_of(*root) : std::nullopt) {
    TRY(rooted, below(p, *m, *start));
  }
  std::vector<Edge> out, into;
  if (rooted) {
    for (const Edge& e : rooted->edges) {
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
  for (const Function& f : rooted ? rooted->functions : m->functions())
    if (shown.contains(*m->index_of(f.id))) put_node(json, f, m->compared());
  json.end_array();
  put_edges(json, *m, edges);
  return {};
}

}  // namespace weir::view
