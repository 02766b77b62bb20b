// The call graph (of the whole run, below a virtual root, and around one function) and the flame graph.
#include <algorithm>
#include <charconv>
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
    if (f.calls != figures.calls || f.total != figures.total) rooted.parts.insert(id);
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

// Calls that found no place in the table of call paths: their time stands at their callers. (Samples have no calls, and other
// profiles may have no paths.)
uint64_t missing_calls(const Model& model, const Paths& paths) {
  return paths.calls() ? model.calls() - std::min(model.calls(), paths.calls()) : 0;
}

void put_missing(JsonWriter& json, const Model& model, uint64_t missing) {
  if (missing) json.member("missing_calls", missing).member("made_calls", model.calls());
}

// "12.55.9"; empty: the whole run.
std::optional<std::vector<uint32_t>> path_of(const std::string& text) {
  std::vector<uint32_t> path;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    uint32_t id = 0;
    auto parsed = std::from_chars(at, end, id);
    if (parsed.ec != std::errc()) return std::nullopt;
    path.push_back(id);
    if (parsed.ptr == end) break;
    if (*parsed.ptr != '.' || parsed.ptr + 1 == end) return std::nullopt;
    at = parsed.ptr + 1;
  }
  return path;
}

template <class Get>
void column(JsonWriter& json, const char* key, const std::vector<Cut::Node>& nodes, Get get) {
  json.key(key).begin_array();
  for (const Cut::Node& n : nodes) json.value(uint64_t{get(n)});
  json.end_array();
}

}  // namespace

Result<std::optional<Rooted>> Queries::rooted(const Parameters& p, const Model& model) {
  std::optional<uint64_t> id = number_of(p, "root");
  std::optional<uint32_t> root = id ? model.index_of(*id) : std::nullopt;
  if (!root) return std::nullopt;
  TRY(std::shared_ptr<Paths> tree, paths(thread_of(p)));
  Paths::Below below = tree->below(model.functions()[*root].id);
  if (below.functions.empty()) return by_calls(model, *root);
  Rooted rooted = by_paths(model, *root, below);
  rooted.missing_calls = missing_calls(model, *tree);
  return rooted;
}

void Queries::put_node(JsonWriter& json, const Function& f, const Model& model, const std::optional<Rooted>& rooted) const {
  json.begin_object();
  bool is_bounded = rooted && rooted->bounded.contains(f.id);
  put(json, f, model.compared(), is_bounded || (rooted && rooted->parts.contains(f.id)));
  json.member("children", uint64_t{f.children}).member("root", f.root);
  if (is_bounded) json.member("at_most", true);
  json.end_object();
}

void Queries::put_edges(JsonWriter& json, const std::vector<Edge>& edges, const Model& model,
                        const std::optional<Rooted>& rooted) const {
  json.key("edges").begin_array();
  for (const Edge& e : edges) {
    uint32_t caller = model.functions()[e.caller].id, callee = model.functions()[e.callee].id;
    json.begin_object().member("caller", uint64_t{caller}).member("callee", uint64_t{callee}).member("total", e.total);
    put_count(json, "calls", e.calls);
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
  if (below) {
    json.member("below", true);
    put_missing(json, *m, below->missing_calls);
  }
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

Result<> Queries::flame(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Paths> tree, paths(thread_of(p)));
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::optional<std::vector<uint32_t>> path = path_of(text_of(p, "root"));
  std::optional<uint64_t> of = number_of(p, "of");
  if (of && path && path->empty()) path = {static_cast<uint32_t>(*of)};
  std::optional<Cut> cut;
  if (path)
    cut = of                       ? tree->callers_of(*path, most_frames)
          : p.contains("inverted") ? tree->inverted(*path, most_frames)
                                   : tree->cut(*path, most_frames);
  if (!cut) return fail("this path is not in the profile");
  put_missing(json, *m, missing_calls(*m, *tree));
  json.key("path").begin_array();
  for (uint32_t id : *path) json.value(uint64_t{id});
  json.end_array();
  column(json, "parent", cut->nodes, [](auto& n) { return n.parent; });
  column(json, "function", cut->nodes, [](auto& n) { return n.function; });
  column(json, "total", cut->nodes, [](auto& n) { return n.total; });
  column(json, "self", cut->nodes, [](auto& n) { return n.self; });
  column(json, "calls", cut->nodes, [](auto& n) { return n.calls; });
  if (tree->compared()) column(json, "before", cut->nodes, [](auto& n) { return n.before; });
  json.member("cut", cut->left_out).key("names").begin_object();
  std::vector<uint32_t> ids = *path;
  for (const Cut::Node& n : cut->nodes) ids.push_back(n.function);
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  for (uint32_t id : ids)
    if (std::optional<uint32_t> index = m->index_of(id)) {
      const Function& f = m->functions()[*index];
      json.key(std::to_string(id)).begin_array().value(f.name).value(f.image).end_array();
    }
  json.end_object();
  return {};
}

}  // namespace weir::view
