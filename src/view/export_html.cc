#include "view/export_html.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/zip.h"
#include "view/page.h"

namespace weir::view {
namespace {

std::string base64(std::string_view bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(bytes.size() / 3 * 4 + 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    size_t n = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; k++) three = three << 8 | (k < n ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; k++) text += k <= n ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// As URLSearchParams writes it: the name of a question must be the same on both sides.
std::string form_encoded(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (isalnum(static_cast<uint8_t>(c)) || c == '*' || c == '-' || c == '.' || c == '_') result += c;
    else if (c == ' ') result += '+';
    else result += fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return result;
}

class Answers {
 public:
  explicit Answers(Queries& queries) : queries_(queries) {}

  void add(const std::string& question, const std::string& answer) {
    JsonWriter key = JsonWriter::compact();
    key.value(question);
    json_ += json_.empty() ? "{" : ",";
    json_ += key.text + ":" + answer;
  }
  Result<> ask(const std::string& name, const Parameters& parameters = {}) {
    TRY(std::string answer, queries_.answer(name, parameters));
    std::string question = name;
    for (auto& [key, value] : parameters) question += (question == name ? "?" : "&") + key + "=" + form_encoded(value);
    add(question, answer);
    return {};
  }
  size_t size() const { return json_.size(); }
  std::string take() { return std::move(json_) + "}"; }

 private:
  Queries& queries_;
  std::string json_;
};

// The functions with the most self time; and those of the graph, which have the largest totals.
Result<std::vector<uint32_t>> chosen(Model& model, size_t most, size_t graph) {
  TRY(const std::vector<uint32_t>* by_self, model.ordered({"self", false, "", false}));
  std::vector<uint32_t> list(by_self->begin(), by_self->begin() + static_cast<ptrdiff_t>(std::min(most, by_self->size())));
  std::set<uint32_t> taken(list.begin(), list.end());
  TRY(const std::vector<uint32_t>* by_total, model.ordered({"total", false, "", false}));
  for (size_t i = 0; i < graph && i < by_total->size(); i++)
    if (taken.insert((*by_total)[i]).second) list.push_back((*by_total)[i]);
  if (model.compared()) {
    TRY(const std::vector<uint32_t>* by_change, model.ordered({"change", false, "", false}));
    for (size_t i = 0; i < 500 && i < by_change->size(); i++)
      for (uint32_t f : {(*by_change)[i], (*by_change)[by_change->size() - 1 - i]})
        if (taken.insert(f).second) list.push_back(f);
  }
  return list;
}

// Whole source files of the functions, as far as they are here and there is room. Of each, all lines of the profile are looked at.
void add_files(Queries& queries, Answers& answers, const Options& options, const std::set<std::string>& files,
               size_t room) {
  size_t most = 40;
  for (const std::string& file : files) {
    if (most == 0 || access(store::mapped(file, options.source_map).c_str(), R_OK) != 0) continue;
    Result<std::string> answer = queries.answer("file", {{"path", file}});
    if (!answer || answer->size() > room) continue;
    most--;
    room -= answer->size();
    answers.add("file?path=" + form_encoded(file), *answer);
  }
}

}  // namespace

Result<std::string> html_of(const Options& options, const HtmlLimits& limits, const std::function<void(double)>& progress) {
  TRY(std::unique_ptr<Queries> queries, Queries::open(options));
  queries->most_frames = limits.frames;
  queries->leave_out_unproven_sources();
  TRY(std::shared_ptr<Model> model, queries->model(std::nullopt));
  TRY(std::vector<uint32_t> list, chosen(*model, limits.functions, queries->most_graph_nodes));
  Answers answers(*queries);
  std::vector<std::string> pruned;
  size_t all = model->functions().size();
  if (list.size() < all)
    pruned.push_back(
        fmt::format("A big profile: this file holds {} of {} functions, those with the most time; weir view shows all.",
                    with_commas(list.size()), with_commas(all)));
  answers.add("functions", queries->list_of(*model, list));
  for (const char* question : {"graph", "threads"}) TRY_VOID(answers.ask(question));
  if (!queries->is_sampled())
    for (const char* question : {"oscalls", "coverage"}) TRY_VOID(answers.ask(question));
  if (!options.before.empty()) TRY_VOID(answers.ask("changes"));
  for (const Parameters& p : {Parameters{}, Parameters{{"inverted", "1"}}}) TRY_VOID(answers.ask("flame", p));
  // What takes long are two rounds over the functions.
  auto told = [&](double rounds, size_t done) {
    progress((rounds + static_cast<double>(done) / static_cast<double>(list.size())) / 2);
  };
  for (size_t i = 0; i < list.size(); i++) {
    TRY_VOID(answers.ask("function", {{"id", std::to_string(model->functions()[list[i]].id)}}));
    told(0, i);
  }
  size_t code = 0;
  for (size_t before = answers.size(); code < list.size() && answers.size() < before + limits.code_bytes; code++) {
    for (const char* question : {"source", "asm"})
      TRY_VOID(answers.ask(question, {{"id", std::to_string(model->functions()[list[code]].id)}}));
    told(1, std::max(code, list.size() * (answers.size() - before) / limits.code_bytes));
  }
  if (code < list.size())
    pruned.push_back(
        fmt::format("Source and disassembly are here of the {} functions with the most self time.", with_commas(code)));
  std::set<std::string> files;
  for (size_t i = 0; i < code; i++)
    if (const Function& f = model->functions()[list[i]]; f.ran && !f.file.empty()) files.insert(f.file);
  add_files(*queries, answers, options, files, limits.file_bytes);
  queries->set_pruned(std::move(pruned));
  TRY_VOID(answers.ask("summary"));
  TRY(std::string packed, gzipped(answers.take()));
  std::string html(page());
  size_t end = html.rfind("</body>");
  if (end == std::string::npos) return fail("the page has no end: build weir anew");
  html.insert(end, "<script type=\"text/plain\" id=\"weir-data\">" + base64(packed) + "</script>\n");
  return html;
}

}  // namespace weir::view
