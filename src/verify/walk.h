// What every acceptance rule reads and gives, and the way down a tree that most of them share.
#pragma once

#include <functional>
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

  // The target's distribution of the token after `node`, all samplers applied. `node` is the root
  // or the node of the last accepted token. Valid until the next call.
  virtual Result<Distribution> at(NodeId node) = 0;

  // The same as if the tokens from the root to `node` had been accepted; decides and changes
  // nothing. Call it for the root, then for each node after its parent, before anything is
  // accepted. For rules that look at a whole path first.
  virtual Result<Distribution> peek(NodeId node) = 0;

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

// Decides the text's next token after a node, given the target's distribution there. kNoToken when
// none is possible.
using Decide = std::function<Token(NodeId node, const Distribution& q)>;

// From the root down: decide, announce, and go to the child that carries the token, while there is
// one and the text goes on. `root_position` is the root's position in the text.
// Errors: what target.at() gives, and kInternal when there is no possible token. Tokens announced
// before the error stay announced.
Result<Walk> walk_down(const TokenTree& tree, Pos root_position, TargetDistributions& target,
                       const Decide& decide);

// The error of a distribution without a possible token.
Status no_possible_token(Pos position);

}  // namespace outrider
