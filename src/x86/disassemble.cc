#include "x86/disassemble.h"

#include <Zydis/Zydis.h>

#include "base/result.h"

namespace weir::x86 {
namespace {

struct Formatter {
  ZydisDecoder decoder;
  ZydisFormatter formatter;

  Formatter() {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    for (auto padding : {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
                         ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING})
      ZydisFormatterSetProperty(&formatter, padding, ZYDIS_PADDING_DISABLED);
  }
};

}  // namespace

std::vector<TextInsn> disassemble(std::span<const std::byte> bytes, uint64_t offset) {
  static const Formatter zydis;
  std::vector<TextInsn> result;
  while (!bytes.empty()) {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    TextInsn line{offset, 1, {}};
    char text[256];
    if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis.decoder, bytes.data(), bytes.size(), &insn, operands)) &&
        ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&zydis.formatter, &insn, operands, insn.operand_count_visible, text,
                                                     sizeof text, offset, nullptr))) {
      line.length = insn.length;
      line.text = text;
    } else {
      line.text = fmt::format("(bad) {:02x}", std::to_integer<unsigned>(bytes[0]));
    }
    bytes = bytes.subspan(line.length);
    offset += line.length;
    result.push_back(std::move(line));
  }
  return result;
}

}  // namespace weir::x86
