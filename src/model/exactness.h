// Exactness: whether a batch gives the very bits of single steps, on one model, machine and
// setting.
#pragma once

#include <cstdint>
#include <string>

namespace outrider {

// What a user asks for (the field "exact").
enum class ExactMode {
  kAuto,  // the settings of a fixed rule per backend and weight type; the verdict is reported
  kOn,    // insist: other weight buffers, then narrower widths, else refuse with the reason
  kOff,   // the fastest settings; the verdict is reported
};

struct Exactness {
  enum class Kind {
    kExact,          // every probed width gives the bits of single steps
    kUpToWidth,      // widths 1..width do, a wider one does not
    kDistributional  // not even width 2, or not beside other sequences: only the distribution is
                     // the target's, as far as is known
  };
  Kind kind = Kind::kDistributional;
  // The widest that was found equal everywhere, for one sequence at least; 1: none.
  std::int32_t width = 1;
  std::string coverage;  // what the probe covered: "widths 2-16, depths to 576, 3.1 s, cached"
  std::string reason;    // why it is not exact, with the first difference; empty when exact

  // "exact", "exact up to width 4", "distributional": the contract's verdicts.
  std::string verdict() const {
    switch (kind) {
      case Kind::kExact:
        return "exact";
      case Kind::kUpToWidth:
        return "exact up to width " + std::to_string(width);
      case Kind::kDistributional:
        return "distributional";
    }
    return "distributional";
  }
};

}  // namespace outrider
