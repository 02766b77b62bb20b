// The questions of the page (docs/view.md), each answered with a small piece of JSON. The server asks them when the page does,
// the one-file export asks them all ahead.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/json.h"
#include "store/annotate.h"
#include "store/compare.h"
#include "view/model.h"
#include "view/paths.h"

namespace weir::view {

using Parameters = std::map<std::string, std::string>;

struct Options {
  std::string file;
  std::string before;                   // a run to compare with; empty: none
  std::vector<std::string> map;         // OLD=NEW: images or functions that are the same
  store::SourceMap source_map;          // where sources are now
  std::optional<bool> with_waits = {};  // see store::Reader::add_waits
  bool fold_inlined = false;            // into those that they were inlined into
};

// Which file a name stands for, and what was last written to it.
struct FileState {
  bool is_there = false;
  uint64_t device = 0, inode = 0, size = 0;
  int64_t seconds = 0, nanoseconds = 0;
  bool operator==(const FileState&) const = default;
  static FileState of(const std::string& path);
  // It is the same file, and was changed since.
  bool is_overwritten(const FileState& since) const {
    return is_there && since.is_there && device == since.device && inode == since.inode && *this != since;
  }
};

// What stands below a virtual root: functions with the figures that they have there, and the calls among them.
struct Rooted {
  std::vector<Function> functions;
  std::vector<Edge> edges;          // by index in the model
  std::set<uint32_t> bounded = {};  // functions (by id) whose figures, and those of whose calls, are upper bounds
  std::set<uint32_t> parts = {};    // … and that were called elsewhere, too
  uint64_t missing_calls = 0;       // of the run, that are on no call path
};

class Queries {
 public:
  static Result<std::unique_ptr<Queries>> open(const Options& options);

  // The answer to a question, from any thread.
  Result<std::string> answer(const std::string& name, const Parameters& parameters);

  // For the export.
  bool is_sampled() const { return is_sampled_; }
  Result<std::shared_ptr<Model>> model(std::optional<uint32_t> thread);
  std::string list_of(const Model& model, const std::vector<uint32_t>& functions) const;  // as `functions` answers
  void set_pruned(std::vector<std::string> notes) { pruned_ = std::move(notes), summary_.reset(); }
  // Whoever gets the file gets the sources: not what a profile only says to be one.
  void leave_out_unproven_sources() { only_proven_sources_ = true; }
  // How much of a graph or of a tree is sent at most.
  size_t most_graph_nodes = 1000, most_frames = 20'000;

 private:
  explicit Queries(const Options& options) : options_(options) {}
  Result<> open_files();
  Result<std::shared_ptr<Paths>> paths(std::optional<uint32_t> thread);
  Result<> select(std::optional<uint32_t> thread);
  Result<> check_files() const;
  // The run before, of the threads that the selected ones are compared with; null where there are none.
  const store::Reader* compared() const;
  // Of all threads; found when it is first asked for.
  Result<const store::Match*> match();

  Result<> summary(const Parameters& p, JsonWriter& json);
  Result<> functions(const Parameters& p, JsonWriter& json);
  Result<> function(const Parameters& p, JsonWriter& json);
  Result<> graph(const Parameters& p, JsonWriter& json);
  Result<> neighbours(const Parameters& p, JsonWriter& json);
  Result<> flame(const Parameters& p, JsonWriter& json);
  Result<> changes(const Parameters& p, JsonWriter& json);
  Result<> threads(const Parameters& p, JsonWriter& json);
  Result<> os_calls(const Parameters& p, JsonWriter& json);
  Result<> coverage(const Parameters& p, JsonWriter& json);
  Result<> source(const Parameters& p, JsonWriter& json);
  Result<> file(const Parameters& p, JsonWriter& json);
  Result<> assembly(const Parameters& p, JsonWriter& json);
  Result<> status(const Parameters& p, JsonWriter& json);
  Result<> reload(const Parameters& p, JsonWriter& json);

  void put_count(JsonWriter& json, const char* key, uint64_t n) const;  // null: samples do not tell
  void put(JsonWriter& json, const Model& model, uint32_t index) const;
  // is_part: its figures are not all of the function's, and what was not counted apart is null.
  void put(JsonWriter& json, const Function& f, bool compared, bool is_part = false) const;
  void put_node(JsonWriter& json, const Function& f, const Model& model, const std::optional<Rooted>& rooted) const;
  void put_edges(JsonWriter& json, const std::vector<Edge>& edges, const Model& model,
                 const std::optional<Rooted>& rooted) const;
  Result<std::optional<Rooted>> rooted(const Parameters& p, const Model& model);  // none: there is no root
  // The function that `id` names, and the file that has it: this run's, or that of the run before.
  struct Found {
    std::shared_ptr<Model> model;
    uint32_t index;
    store::Reader* reader;
    store::FunctionRow row;  // with the id that it has there
    bool ran;
    // A function of that file, as the page names it.
    uint32_t page_id(uint32_t there) const { return ran || there == store::none ? there : model->id_of_before(there); }
  };
  Result<Found> find(const Parameters& p);
  Result<std::shared_ptr<const store::SourceText>> source_of(bool now, const std::string& path);
  Result<> put_calls(JsonWriter& json, const Found& found, bool callers);

  Options options_;
  std::mutex mutex_;
  std::optional<store::Reader> reader_, before_;
  FileState state_, state_before_;  // when they were opened
  bool is_sampled_ = false, with_waits_ = false;
  double scale_ = 1;                           // of times before
  std::optional<store::Match> match_;          // of the functions of both files
  std::map<uint32_t, uint32_t> same_threads_;  // the thread before that each is compared with
  std::set<uint64_t> threads_;                 // ids
  std::optional<uint32_t> selected_;
  std::map<std::optional<uint32_t>, std::shared_ptr<Model>> models_;
  std::map<std::optional<uint32_t>, std::shared_ptr<Paths>> paths_;
  struct Source {
    FileState state;
    std::shared_ptr<const store::SourceText> text;
  };
  std::map<std::pair<bool, std::string>, Source> sources_;
  std::vector<std::string> pruned_;
  bool only_proven_sources_ = false;
  std::mutex summary_mutex_;
  std::optional<std::string> summary_;  // of all threads: the page's first question does not wait for long ones
};

// Parameters.
std::optional<uint64_t> number_of(const Parameters& p, const std::string& name);
std::string text_of(const Parameters& p, const std::string& name);
std::optional<uint32_t> thread_of(const Parameters& p);

}  // namespace weir::view
