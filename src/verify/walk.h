// What every acceptance rule reads and gives.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "dist/distribution.h"
#include "tree/token_tree.h"

namespace outrider {

// The target's side of a walk down a tree. The walk visits nodes from the root down and announces
// every token that it decides before it looks at the next node, so the distributions may depend on
// the tokens decided so far (penalties, grammars) and nothing ever needs undoing.
class TargetDistributions {
 public:
  virtual ~TargetDistributions() = default;

  // The target's distribution of the token after `node`, all samplers applied. Valid until the next
  // call.
  virtual Result<Distribution> at(NodeId node) = 0;

  // `token` is the text's next token. Returns false when the text ends with it (a stop string, an
  // end token, the limit): the walk then ends there, whatever else was drafted.
  virtual bool accept(Token token) = 0;
};

// How a walk went.
struct Walk {
  std::vector<NodeId> path;    // nodes whose state stays, from the root down; never empty
  std::vector<Token> emitted;  // tokens decided, in order; never empty

  // Drafted nodes on the path.
  std::size_t accepted() const { return path.size() - 1; }
};

}  // namespace outrider
