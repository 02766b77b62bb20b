// Annotated disassembly (spec 1, S2): the blocks of a function in the order of their places, each with its count.
#include <map>

#include "report/views.h"
#include "x86/disassemble.h"

namespace weir::report {
namespace {

// "tables.c:7,8" for each block: where its code comes from.
Result<std::map<uint32_t, std::string>> places(View& v, const store::FunctionInfo& f) {
  struct Place {
    std::string text, file, inlined;
  };
  std::map<uint32_t, Place> places;
  TRY_VOID(v.reader.lines(f, [&](const store::LineRow& r) {
    if (r.line == 0) return;
    Place& p = places[r.block];
    if (p.file == r.file && p.inlined == r.inlined && !p.text.empty()) {
      p.text += fmt::format(",{}", r.line);
      return;
    }
    p.text += fmt::format("{}{}:{}{}", p.text.empty() ? "" : " ", base_name(r.file), r.line,
                          r.inlined.empty() ? "" : fmt::format(" [{}]", shortened(r.inlined, 30)));
    p.file = r.file;
    p.inlined = r.inlined;
  }));
  std::map<uint32_t, std::string> texts;
  for (auto& [block, p] : places) texts[block] = p.text;
  return texts;
}

}  // namespace

Result<> assembly(View& v) {
  TRY(store::FunctionInfo f, one_function(v, v.options.subject));
  TRY(store::FunctionRow row, v.reader.function(f.id, store::OsTime::Apart));
  if (!f.has_code)
    return fail("{}: was inlined wherever it is called, and has no code of its own; see: weir report {} source {}",
                shortened(f.name, 80), v.reader.path(), quoted_command({v.options.subject}));
  if (f.blocks == 0 && v.is_sampled())
    return fail("{}: no sample was taken in its own code; see: weir report {} detail {}", shortened(f.name, 80),
                v.reader.path(), quoted_command({v.options.subject}));
  if (f.blocks == 0)
    return fail("{}: never ran, so its code is not in the profile; see: objdump -d {}", shortened(f.name, 80), f.image);
  std::map<uint64_t, std::string> callees;  // by the offset of the call
  store::CallQuery query;
  query.caller = f.id;
  query.by_site = query.of_code = true;
  TRY_VOID(v.reader.calls(query, [&](const store::CallRow& c) {
    std::string& text = callees[c.offset];
    text += fmt::format("{}{} ({})", text.empty() ? "→ " : ", ", shortened(c.callee_name, 50),
                        with_commas(v.is_sampled() ? c.total : c.calls));
  }));
  TRY(auto sources, places(v, f));

  v.out.fact("name", f.name);
  v.out.fact("calls", v.if_exact(row.calls));
  v.out.fact("self", row.self);
  if (v.out.is_text()) {
    v.out.table("", {});
    TRY(store::FunctionRow described, v.reader.function(f.id, v.options.os));
    TRY_VOID(describe(v, described, "* "));
    v.out.end_table();
  }
  v.out.table("rows", {{"", "self %", Kind::Share},
                       {"self", v.is_sampled() ? "samples" : "self", Kind::Cycles},
                       {"count", v.is_sampled() ? nullptr : "count", Kind::Count},
                       {"mark", "", Kind::Label},
                       {"offset", nullptr, Kind::Count},
                       {"", "offset", Kind::Label},
                       {"text", nullptr, Kind::Code},
                       {"callees", nullptr, Kind::Name},
                       {"source", nullptr, Kind::Path},
                       {"", "code", Kind::Code}});
  store::Cycles whole = 0;  // with what was inlined
  TRY_VOID(v.reader.blocks(f, [&](const store::BlockRow& b) { whole += b.self(); }));
  uint64_t end = f.offset;
  TRY_VOID(v.reader.blocks(f, [&](const store::BlockRow& b) {
    if (b.offset > end)
      v.out.row_line(fmt::format("  ⋮ {} bytes that were not {}", with_commas(b.offset - end),
                                 v.is_sampled() ? "sampled" : "reached"));
    bool first = true, ran = b.count > 0;
    std::vector<x86::TextInsn> insns = x86::disassemble(b.bytes, b.offset);
    if (insns.empty()) insns.push_back({b.offset, 0, "(its bytes are not known)"});  // a sample in code that is in no file
    for (const x86::TextInsn& insn : insns) {
      auto callee = callees.find(insn.offset);
      std::string called = callee == callees.end() ? "" : callee->second;
      std::string source = first ? sources[b.id] : "";
      std::string code = insn.text;
      if (!called.empty()) code += fmt::format("{:{}}{}", "", code.size() < 26 ? 28 - code.size() : 2, called);
      if (v.out.is_text() && !source.empty())
        v.out.row({Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), source}, {0, true});
      Cell share = share_if(first && ran, View::ratio(b.self(), std::max(whole, row.self)));
      Cell count = number_if(!v.is_sampled() && (first || !v.out.is_text()), b.count);
      const char* mark = ran ? "|" : v.is_sampled() ? "" : "#";
      v.out.row({share, number_if(first && (ran || !v.out.is_text()), b.self()), count, mark, insn.offset,
                 fmt::format("{:#x}", insn.offset), insn.text, text_if_any(called), text_if_any(source), code},
                {0, !ran});
      first = false;
    }
    end = std::max(end, b.offset + b.bytes.size());
  }));
  v.out.end_table();
  return {};
}

}  // namespace weir::report
