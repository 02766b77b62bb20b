// Functions as their author wrote them: clones added up.
//
// A compiler makes several functions of one: `work.constprop.0` for some callers, `work.part.0` of its rare half, which `work` calls. They become
// one row where it is sure that they are one function: of one image, with one name but for what the compiler has added, declared at one place
// where that is known, and with no second function of that name.
#pragma once

#include <vector>

#include "store/reader.h"

namespace weir::report {

// As `functions` of the reader, with the rows of clones added up. What they call among each other is in their total once, and the calls of a
// `.part` by its own function are none. (Time that passes through another function in between is counted twice.)
Result<std::vector<store::FunctionRow>> rows_of_authors(const store::Reader& reader, store::FunctionQuery query);

// By the column of the query, if it is one of those that adding up or taking apart changes; by the others rows are sorted already.
void sort_again(std::vector<store::FunctionRow>& rows, const store::FunctionQuery& query);

}  // namespace weir::report
