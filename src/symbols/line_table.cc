// The problem: which line an address comes from, told by a program that must be run.
//
// libdw runs these programs as well, but sorts the rows of all their sequences together. Where a sequence ends at the
// address at which the next begins, or where the linker left those of dropped functions at address 0, below code that is
// alive, rows of one get into the other. Here a sequence stays together; it also is four times as fast.
// Invariant: rows are sorted by address and no two have the same one. After DWARF 5, section 6.2; versions 2 to 5.
#include "symbols/line_table.h"

#include <dwarf.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace weir::symbols {

namespace {

struct Header {
  uint16_t version = 0;
  unsigned offset_size = 4;
  uint8_t instruction_length = 1, line_range = 1, opcode_base = 1;
  int8_t line_base = 0;
  bool default_is_statement = false;
  Reader opcode_lengths, program;
};

struct Field {
  uint64_t content, form;
};

class TableReader {
 public:
  TableReader(const LineSections& sections, const std::function<bool(Vaddr)>& is_code)
      : sections_(sections), is_code_(is_code) {}

  LineTable read(uint64_t offset) {
    Reader r = sections_.lines;
    r.skip(offset);
    if (read_header(r)) run();
    return std::move(table_);
  }

 private:
  bool read_header(Reader& r) {
    uint64_t length = r.fixed(4);
    if (length == 0xffffffff) length = r.fixed(8), header_.offset_size = 8;
    r = r.take(std::min<uint64_t>(length, r.left()));
    header_.version = static_cast<uint16_t>(r.fixed(2));
    if (header_.version < 2 || header_.version > 5) return false;
    if (header_.version == 5) r.skip(2);  // sizes of addresses and segment selectors
    Reader rest = r.take(r.fixed(header_.offset_size));
    header_.program = r;
    header_.instruction_length = static_cast<uint8_t>(rest.fixed(1));
    if (header_.version >= 4) rest.skip(1);  // operations in an instruction: 1
    header_.default_is_statement = rest.fixed(1) != 0;
    header_.line_base = static_cast<int8_t>(rest.fixed(1));
    header_.line_range = std::max<uint8_t>(1, static_cast<uint8_t>(rest.fixed(1)));
    header_.opcode_base = std::max<uint8_t>(1, static_cast<uint8_t>(rest.fixed(1)));
    header_.opcode_lengths = rest.take(header_.opcode_base - 1u);
    header_.version == 5 ? read_files(rest) : read_old_files(rest);
    return rest.ok && r.ok;
  }

  // Version 5: tables that describe their own columns, numbered from 0.
  void read_files(Reader& r) {
    std::vector<std::string_view> directories;
    each_entry(r, [&](std::string_view path, uint64_t) { directories.push_back(path); });
    // The first is where the compiler ran. A relative one says no more than the unit does.
    if (!directories.empty() && !directories[0].starts_with('/')) directories[0] = "";
    each_entry(r, [&](std::string_view path, uint64_t index) { add_file(directories, path, index); });
  }

  template <class Take>
  void each_entry(Reader& r, Take take) {
    std::vector<Field> format(r.fixed(1));
    for (Field& field : format) field = {r.leb(), r.leb()};
    uint64_t count = format.empty() ? 0 : r.leb();
    for (uint64_t i = 0; i < count && r.ok; ++i) {
      std::string_view path;
      uint64_t index = 0;
      for (const Field& field : format) {
        std::optional<std::string_view> text = read_string(r, field.form);
        uint64_t number = text ? 0 : read_number(r, field.form);
        if (field.content == DW_LNCT_path && text) path = *text;
        if (field.content == DW_LNCT_directory_index) index = number;
      }
      if (r.ok) take(path, index);
    }
  }

  // Up to version 4: lists that end in an empty name, numbered from 1; directory 0 is where the compiler ran.
  void read_old_files(Reader& r) {
    std::vector<std::string_view> directories{""};
    while (r.ok) {
      std::string_view path = r.string();
      if (path.empty()) break;
      directories.push_back(path);
    }
    table_.files.emplace_back();
    while (r.ok) {
      std::string_view path = r.string();
      if (path.empty()) break;
      uint64_t index = r.leb();
      r.leb(), r.leb();  // time and size
      add_file(directories, path, index);
    }
  }

  void add_file(std::span<const std::string_view> directories, std::string_view path, uint64_t index) {
    table_.files.push_back({index < directories.size() ? directories[index] : "", path});
  }

  std::optional<std::string_view> read_string(Reader& r, uint64_t form) const {
    if (form == DW_FORM_string) return r.string();
    if (form != DW_FORM_line_strp && form != DW_FORM_strp) return std::nullopt;
    Reader strings = form == DW_FORM_strp ? sections_.strings : sections_.line_strings;
    strings.skip(r.fixed(header_.offset_size));
    return strings.string();
  }

  static uint64_t read_number(Reader& r, uint64_t form) {
    switch (form) {
      case DW_FORM_udata: return r.leb();
      case DW_FORM_data1: return r.fixed(1);
      case DW_FORM_data2: return r.fixed(2);
      case DW_FORM_data4: return r.fixed(4);
      case DW_FORM_data8: return r.fixed(8);
      case DW_FORM_data16: r.skip(16); return 0;
      case DW_FORM_block: r.skip(r.leb()); return 0;
      default: r.ok = false; return 0;
    }
  }

  void run() {
    Reader& r = header_.program;
    reset();
    while (r.ok && r.left() > 0) {
      auto opcode = static_cast<uint8_t>(r.fixed(1));
      if (opcode >= header_.opcode_base) {
        unsigned adjusted = opcode - header_.opcode_base;
        advance_address(adjusted / header_.line_range);
        line_ += static_cast<uint32_t>(header_.line_base + static_cast<int>(adjusted % header_.line_range));
        add_row();
      } else if (opcode == 0) {
        extended(r);
      } else {
        standard(opcode, r);
      }
    }
    merge();
  }

  void standard(uint8_t opcode, Reader& r) {
    switch (opcode) {
      case DW_LNS_copy: add_row(); break;
      case DW_LNS_advance_pc: advance_address(r.leb()); break;
      case DW_LNS_advance_line: line_ += static_cast<uint32_t>(r.signed_leb()); break;
      case DW_LNS_set_file: file_ = r.leb(); break;
      case DW_LNS_negate_stmt: is_statement_ = !is_statement_; break;
      case DW_LNS_const_add_pc: advance_address((255u - header_.opcode_base) / header_.line_range); break;
      case DW_LNS_fixed_advance_pc: address_ += r.fixed(2); break;
      default:
        // Columns, marks of blocks and what is not known yet: numbers, as many as the header says.
        for (unsigned n = header_.opcode_lengths.at[opcode - 1]; n > 0; --n) r.leb();
    }
  }

  void extended(Reader& r) {
    Reader operation = r.take(r.leb());
    switch (operation.fixed(1)) {
      case DW_LNE_end_sequence:
        end_sequence();
        reset();
        break;
      case DW_LNE_set_address:
        address_ = operation.fixed(static_cast<unsigned>(std::min<size_t>(8, operation.left())));
        break;
      case DW_LNE_define_file: table_.files.push_back({"", operation.string()}); break;
    }
  }

  void reset() {
    sequence_.clear();
    address_ = 0;
    file_ = 1;
    line_ = 1;
    is_statement_ = header_.default_is_statement;
  }

  void advance_address(uint64_t operations) { address_ += operations * header_.instruction_length; }

  void add_row() {
    LineRow row{{address_}, file_ < table_.files.size() ? static_cast<uint32_t>(file_) : none};
    row.line = line_ & INT32_MAX;
    row.is_statement = is_statement_;
    // Of several rows at an address only the last has code.
    if (!sequence_.empty() && sequence_.back().begin == row.begin) sequence_.back() = row;
    else sequence_.push_back(row);
  }

  void end_sequence() {
    if (sequence_.empty() || !is_code_(sequence_.front().begin) || !std::ranges::is_sorted(sequence_, {}, &LineRow::begin))
      return;
    while (!sequence_.empty() && sequence_.back().begin.value >= address_) sequence_.pop_back();
    if (sequence_.empty()) return;
    auto first = static_cast<ptrdiff_t>(rows_.size());
    rows_.insert(rows_.end(), sequence_.begin(), sequence_.end());
    rows_.push_back({.begin = {address_}});
    sequences_.push_back({first, static_cast<ptrdiff_t>(rows_.size()), sequence_.front().begin});
  }

  // Sequences in the order of their addresses; one that begins inside another ends it.
  void merge() {
    std::ranges::stable_sort(sequences_, {}, &Sequence::begin);
    table_.rows.reserve(rows_.size());
    for (const Sequence& s : sequences_) {
      while (!table_.rows.empty() && table_.rows.back().begin >= s.begin) table_.rows.pop_back();
      table_.rows.insert(table_.rows.end(), rows_.begin() + s.first, rows_.begin() + s.last);
    }
  }

  struct Sequence {
    ptrdiff_t first, last;  // its rows
    Vaddr begin;
  };

  const LineSections& sections_;
  const std::function<bool(Vaddr)>& is_code_;
  LineTable table_;
  Header header_;
  // The machine's registers, and the rows of the sequence that it is in.
  uint64_t address_ = 0, file_ = 1;
  uint32_t line_ = 1;
  bool is_statement_ = false;
  std::vector<LineRow> sequence_;
  // Sequences that have ended, in the order of the program.
  std::vector<LineRow> rows_;
  std::vector<Sequence> sequences_;
};

}  // namespace

std::string LineTable::path_of(uint64_t file, std::string_view directory) const {
  if (file >= files.size() || files[file].name.empty()) return "";
  return (std::filesystem::path(directory) / files[file].directory / files[file].name).lexically_normal();
}

LineTable read_line_table(const LineSections& sections, uint64_t offset, const std::function<bool(Vaddr)>& is_code) {
  return TableReader(sections, is_code).read(offset);
}

}  // namespace weir::symbols
