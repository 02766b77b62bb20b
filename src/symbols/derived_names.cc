#include "symbols/derived_names.h"

#include <algorithm>
#include <tuple>

#include "symbols/demangle.h"
#include "symbols/references.h"

namespace weir::symbols {

namespace {

constexpr size_t most_users = 8;  // a function that more need belongs to none of them
constexpr size_t most_shown = 3;

// Those that people call by it come first: without underscores, and short.
bool is_plainer(const std::string& a, const std::string& b) {
  auto rank = [](const std::string& s) { return std::tuple(std::min(s.find_first_not_of('_'), s.size()), s.size()); };
  return std::tuple(rank(a), std::string_view(a)) < std::tuple(rank(b), std::string_view(b));
}

class Namer {
 public:
  // (Entries of linkage tables are nobody's callers here, and no function that has to be named.)
  Namer(const Object& image, std::span<const Function> all) : image_(image) {
    for (const Function& f : all)
      if (f.kind != Kind::PltEntry) functions_.push_back(&f), ranges_.push_back(f.range);
    names_.resize(functions_.size());
  }

  std::map<Vaddr, DerivedName> run() {
    References found(image_.contents, image_.sections, ranges_);
    references_ = &found;
    name_main();
    name_variants();
    name_targets();
    name_by_users();
    std::map<Vaddr, DerivedName> names;
    for (uint32_t i = 0; i < names_.size(); i++)
      if (!names_[i].text.empty())
        names[ranges_[i].begin] = {fmt::format("{} [{}]", names_[i].text, functions_[i]->name()), names_[i].by};
    return names;
  }

 private:
  using Names = std::vector<std::string>;

  bool is_nameless(uint32_t i) const { return functions_[i]->is_nameless && names_[i].text.empty(); }
  std::string name_of(uint32_t i) const { return functions_[i]->is_nameless ? names_[i].text : functions_[i]->name(); }
  elf::Bytes code_of(uint32_t i) const { return elf::slice(image_.contents.at(ranges_[i].begin), 0, ranges_[i].size()); }
  uint32_t nameless_at(Vaddr v) const {
    uint32_t i = index_at(ranges_, v);
    return i != nobody && ranges_[i].begin == v && is_nameless(i) ? i : nobody;
  }

  static std::string joined(Names names, size_t shown) {
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), shown); i++) text += (i ? "/" : "") + names[i];
    return names.size() > shown ? text + "…" : text;
  }

  bool imports(std::string_view wanted) const {
    for (const elf::Section& s : image_.sections) {
      if (s.header.sh_type != SHT_DYNSYM || s.header.sh_link >= image_.sections.size()) continue;
      elf::Bytes symbols = image_.bytes_of(s), strings = image_.bytes_of(image_.sections[s.header.sh_link]);
      for (uint64_t at = 0; auto symbol = elf::load<Elf64_Sym>(symbols, at); at += sizeof *symbol)
        if (symbol->st_shndx == SHN_UNDEF && string_at(strings, symbol->st_name) == wanted) return true;
    }
    return false;
  }

  // The first argument, in rdi, of the only call that the entry point makes: lea rdi, [rip + …], or mov rdi, … where addresses are fixed.
  void name_main() {
    auto header = elf::load<Elf64_Ehdr>(image_.contents.file, 0);
    if (!header || !imports("__libc_start_main")) return;
    uint32_t entry = index_at(ranges_, {header->e_entry});
    elf::Bytes code =
        image_.contents.at({header->e_entry}).first(std::min<size_t>(image_.contents.at({header->e_entry}).size(), 48));
    uint32_t main = nobody;
    size_t found = 0;
    for (size_t at = 0; at + 7 <= code.size(); at++) {
      auto number = *elf::load<int32_t>(code, at + 3);
      bool is_lea = elf::load<uint16_t>(code, at) == 0x8d48 && code[at + 2] == std::byte{0x3d};
      bool is_mov = elf::load<uint16_t>(code, at) == 0xc748 && code[at + 2] == std::byte{0xc7};
      if (!is_lea && !is_mov) continue;
      main = nameless_at(is_lea ? Vaddr{header->e_entry} + static_cast<int64_t>(at) + 7 + number
                                : Vaddr{static_cast<uint64_t>(number)});
      found++;
    }
    if (found == 1 && main != nobody && main != entry) main_ = main, names_[main] = {"main", NamedBy::Start};
  }

  // What the code of an IFUNC's resolver names is what it chooses from.
  void name_variants() {
    std::vector<Names> of(functions_.size());
    for (const Reference& r : references_->all()) {
      if (r.kind != Reference::Address || r.from == nobody || functions_[r.from]->kind != Kind::Resolver) continue;
      if (uint32_t i = nameless_at(r.to); i != nobody) of[i].push_back(demangle(functions_[r.from]->linkage_name));
    }
    name_all(of, NamedBy::Variant);
  }

  // endbr64 ; jmp
  void name_targets() {
    std::vector<Names> of(functions_.size());
    for (uint32_t i = 0; i < functions_.size(); i++) {
      if (functions_[i]->is_nameless || functions_[i]->kind != Kind::Function || functions_[i]->linkage_name.empty())
        continue;
      elf::Bytes code = code_of(i);
      constexpr uint32_t endbr64 = 0xfa1e0ff3;
      uint64_t at = elf::load<uint32_t>(code, 0) == endbr64 ? 4 : 0;
      int64_t offset = 0;
      if (elf::load<uint8_t>(code, at) == 0xe9 && code.size() >= at + 5) offset = 5 + *elf::load<int32_t>(code, at + 1);
      else if (elf::load<uint8_t>(code, at) == 0xeb && code.size() >= at + 2) offset = 2 + *elf::load<int8_t>(code, at + 1);
      if (!offset) continue;
      uint32_t target = nameless_at(ranges_[i].begin + (static_cast<int64_t>(at) + offset));
      if (target != nobody) of[target].push_back(functions_[i]->name());
    }
    name_all(of, NamedBy::Target);
  }

  void name_all(std::vector<Names>& of, NamedBy by) {
    for (uint32_t i = 0; i < of.size(); i++) {
      if (of[i].empty()) continue;
      std::ranges::sort(of[i], is_plainer);
      auto same = std::ranges::unique(of[i]);
      of[i].erase(same.begin(), same.end());
      names_[i] = {joined(std::move(of[i]), most_shown), by};
    }
  }

  // Who needs a function: those with names that refer to it, and those that need the others that do. `open`: too many, or it is not known.
  struct Users {
    std::vector<uint32_t> direct, all;
    bool open = false;
  };

  bool is_user(uint32_t i) const { return functions_[i]->kind == Kind::Function && !is_nameless(i); }

  static bool add(std::vector<uint32_t>& to, uint32_t user) {
    auto place = std::ranges::lower_bound(to, user);
    if (place != to.end() && *place == user) return false;
    to.insert(place, user);
    return true;
  }

  // Returns whether the answer has changed.
  bool add_users(uint32_t i, std::vector<Users>& all) {
    Users& users = all[i];
    if (users.open) return false;
    bool changed = false;
    for (const Reference& r : references_->to(ranges_[i])) {
      if (r.from == i) continue;
      if (r.from == nobody || functions_[r.from]->kind == Kind::Resolver) {
        users.open = true;
      } else if (is_user(r.from)) {
        add(users.direct, r.from);
        changed |= add(users.all, r.from);
      } else {
        // (That main needs it is true of most, and says nothing.)
        users.open |= all[r.from].open || std::ranges::binary_search(all[r.from].all, main_);
        for (uint32_t user : all[r.from].all) changed |= add(users.all, user);
      }
      users.open |= users.all.size() > most_users;
      if (users.open) return true;
    }
    return changed;
  }

  void name_by_users() {
    std::vector<Users> all(functions_.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < functions_.size(); i++)
        if (is_nameless(i)) changed |= add_users(i, all);
    }
    std::vector<DerivedName> found(functions_.size());
    for (uint32_t i = 0; i < functions_.size(); i++) {
      if (!is_nameless(i) || all[i].open || all[i].all.empty()) continue;
      std::vector<std::pair<bool, std::string>> users;
      for (uint32_t user : all[i].all) users.emplace_back(!std::ranges::binary_search(all[i].direct, user), name_of(user));
      std::ranges::sort(users, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : is_plainer(a.second, b.second);
      });
      Names names;
      for (auto& [is_far, name] : users)
        if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
      found[i] = {"in " + joined(std::move(names), most_shown), NamedBy::Users};
    }
    for (uint32_t i = 0; i < found.size(); i++)
      if (!found[i].text.empty()) names_[i] = std::move(found[i]);
  }

  const Object& image_;
  std::vector<const Function*> functions_;
  std::vector<VRange> ranges_;  // of each
  const References* references_ = nullptr;
  std::vector<DerivedName> names_;
  uint32_t main_ = nobody;
};

}  // namespace

std::map<Vaddr, DerivedName> derive_names(const Object& image, std::span<const Function> functions) {
  return Namer(image, functions).run();
}

}  // namespace weir::symbols
