// Requests and answers on Weir's side.
#pragma once

#include "base/result.h"
#include "rt/requests.h"

namespace weir::engine {

// What the target asks: read once, as it may change it under our eyes.
struct Posted {
  rt::RequestState state;
  rt::Request kind;
  uint64_t args[rt::request_words];

  static Posted read(const rt::RequestBlock& shared);
  template <class T>
  bool is() const {
    return kind == T::kind;
  }
  template <class T>
  T as() const {
    CHECK(is<T>());
    return rt::from_words<T>(args);
  }
};

// What it is told: any of the structs in rt/requests.h.
struct Answer {
  uint64_t words[rt::answer_words] = {};

  Answer() = default;
  template <class T>
  Answer(const T& answer) {
    rt::to_words(answer, words);
  }
};

}  // namespace weir::engine
