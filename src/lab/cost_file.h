// What a target step of each width costs, from a file: to predict a speed-up without the model.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "lab/text_replay.h"

namespace outrider::lab {

class CostFile {
 public:
  // Reads a JSON array of {"width", "ms"}, or an object that holds one as "curve" or "cost_curve"
  // (other fields are passed over). Width 1 must be there. Errors name the file and the field.
  static Result<CostFile> read(const std::string& path);

  // Milliseconds of a step of `width` tokens; between measured widths on the line between them.
  // kInvalidArgument for more than the widest one measured. REQUIRES: width >= 1
  Result<double> ms(std::int32_t width) const;

  // Plain decoding's time for the replayed tokens over that of the replayed steps, drafting
  // included. REQUIRES: stats.steps > 0
  Result<double> speedup(const ReplayStats& stats) const;

 private:
  std::string path_;
  std::map<std::int32_t, double> ms_;  // by width
};

}  // namespace outrider::lab
