#include "cli/options.h"

namespace weir::cli {

void take_program(const CLI::App& app, Words& words) {
  std::vector<std::string>& all = words.options;
  auto takes_value = [&](const std::string& word) {
    const CLI::Option* option = app.get_option_no_throw(word);
    return option && option->get_items_expected_max() > 0;
  };
  auto at = all.begin();
  for (; at != all.end() && *at != "--" && at->starts_with('-'); ++at)
    if (takes_value(*at) && at + 1 != all.end() && at[1] != "--") ++at;
  bool is_marked = at != all.end() && *at == "--";
  words.program.assign(at + is_marked, all.end());
  all.erase(at, all.end());
}

Result<bool> parse_options(CLI::App& app, const Words& words) {
  std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& e) {
    return fail("{}; see: {} --help", e.what(), app.get_name());
  }
  return true;
}

CLI::Validator number_between(double least, double most) {
  auto check = [=](const std::string& text) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(text, number) && number >= least && number <= most) return "";
    return fmt::format("{} is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("FLOAT in [{} - {}]", least, most));
}

Result<std::string> file_name(std::string_view option, std::string_view pattern) {
  std::string name;
  while (!pattern.empty()) {
    size_t percent = std::min(pattern.find('%'), pattern.size());
    name += pattern.substr(0, percent);
    pattern.remove_prefix(percent);
    size_t end = pattern.find('}');
    if (pattern.starts_with("%q{") && end != std::string_view::npos) {
      std::string variable(pattern.substr(3, end - 3));
      const char* value = getenv(variable.c_str());
      if (!value)
        return fail("{}: %q{{{}}}: there is no such variable in the environment; set it, or name the file without it",
                    option, variable);
      name += value;
      pattern.remove_prefix(end + 1);
    } else if (pattern.starts_with("%p") || pattern.starts_with("%%")) {
      name += pattern[1] == 'p' ? std::to_string(getpid()) : "%";
      pattern.remove_prefix(2);
    } else if (!pattern.empty()) {  // a percent sign that means nothing
      name += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  return name;
}

Result<> tell_bad_rows(const store::Reader& reader) {
  TRY(std::string bad_rows, reader.bad_rows());
  if (!bad_rows.empty()) say("{}: {}", reader.path(), bad_rows);
  return {};
}

void add_waits_option(CLI::App& app, std::optional<bool>& said) {
  app.add_flag_callback("--with-waits", [&] { said = true; }, "add what was waited in OS calls to their time");
  app.add_flag_callback(
      "--without-waits", [&] { said = false; }, "do not, also of a profile by wall time (--clock=wall), which asks for it");
}

Result<store::OsTime> os_time(const store::Reader& reader, const std::string& said) {
  TRY(profile::Run run, reader.run());
  if (run.sampling && !said.empty())
    return fail("--os-calls: {} is a sampled profile, which has no OS calls", reader.path());
  if (said == "self") return store::OsTime::InSelf;
  if (said == "separate") return store::OsTime::Apart;
  return run.os_separate ? store::OsTime::Apart : store::OsTime::InSelf;
}

}  // namespace weir::cli
