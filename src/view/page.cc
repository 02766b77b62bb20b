#include "view/page.h"

extern "C" const char weir_page_begin[], weir_page_end[];

namespace weir::view {

std::string_view page() { return {weir_page_begin, weir_page_end}; }

}  // namespace weir::view
