#include "kernels/instruction_set.h"

#include "kernels/instruction_sets.h"

namespace outrider::kernels {

OffsetRule InstructionSet::offset_rule(WeightType type) const {
  const WeightFormat& format = weight_format(type);
  const int zero = format.values == Values::kSigned8 ? flip : format.zero;
  return {.group = format.group, .zero = zero, .has_minimum = format.has_minimum};
}

const std::vector<const InstructionSet*>& instruction_sets() {
  static const std::vector<const InstructionSet*> kPresent = [] {
    std::vector<const InstructionSet*> present;
    const std::string_view fastest = OUTRIDER_FASTEST_SET;  // of the build; empty: any
    bool may_be = fastest.empty();
    for (const InstructionSet* set : built_instruction_sets()) {
      may_be = may_be || set->name == fastest;
      if (may_be && set->supported()) present.push_back(set);
    }
    return present;
  }();
  return kPresent;
}

const InstructionSet* instruction_set(std::string_view name) {
  for (const InstructionSet* set : instruction_sets()) {
    if (set->name == name) return set;
  }
  return nullptr;
}

}  // namespace outrider::kernels
