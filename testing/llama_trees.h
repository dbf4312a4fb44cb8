// Trees on a LlamaModel, checked against single steps.
//
// A TreeWorld advances several texts in one model by trees with random tokens, whole or grown piece
// by piece, keeps random paths, and lets texts come and go. Every node's logits are compared, bit
// by bit, with those of a model that holds the one text alone and takes single steps.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "llama/model/llama_model.h"
#include "tree/token_tree.h"

namespace outrider::testing {

// The parent of each node; [0] is kNoNode.
using TreeShape = std::vector<NodeId>;

// Every shape with `n` nodes, in every order of them that has parents first: (n - 1)! of them.
std::vector<TreeShape> tree_shapes(int n);

// A shape with `n` nodes and at most `max_leaves` leaves; chain-like, bushy or in between.
TreeShape random_shape(std::mt19937& random, int n, int max_leaves);

class TreeWorld {
 public:
  struct Settings {
    unsigned seed = 0;
    Token first_token = 5;      // random tokens are from here
    std::int32_t n_tokens = 0;  // so many
    int check_all = 1;          // compare all nodes in one of so many trees; 0: in none
  };
  struct Outcome {
    int rows = 0;  // compared
    int identical = 0;
    int longest = 0;  // text
    int most_leaves = 0;
    int grown = 0;  // trees that were evaluated in pieces
    std::int32_t most_parked = 0;
    std::string first_difference;
  };

  // singles[seq] is a model of one sequence for each of the model's; both are empty.
  TreeWorld(llama::LlamaModel& model, std::vector<std::unique_ptr<llama::LlamaModel>> singles,
            const Settings& settings);

  // One tree of this shape for `seq`; keeps the path to `end`, or nothing (kNoNode), or what
  // chance says (kRandomEnd). Behind a prefix of `n_prefix` random tokens.
  static constexpr NodeId kRandomEnd = -2;
  struct Item {
    SeqId seq = 0;
    TreeShape shape;
    NodeId end = kRandomEnd;
    int n_prefix = 0;
    int n_pieces = 1;  // evaluations that the tree grows in
  };
  // Evaluates the items together, compares, commits in random order. Failures are the test's.
  void step(const std::vector<Item>& items);

  // Cuts a text, to nothing or anywhere.
  void cut(SeqId seq, Pos length);

  Pos length(SeqId seq) const { return static_cast<Pos>(text(seq).size()); }
  const Outcome& outcome() const { return outcome_; }
  std::mt19937& random() { return random_; }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  struct Running {
    const Item* item;
    std::vector<Token> prefix;
    TokenTree tree{0};
    std::vector<NodeId> cuts;              // sizes of the tree after each evaluation
    std::vector<std::vector<float>> rows;  // [nodes]
  };

  const std::vector<Token>& text(SeqId seq) const { return texts_[static_cast<std::size_t>(seq)]; }
  Token random_token() { return settings_.first_token + below(settings_.n_tokens); }
  Running start(const Item& item);
  void evaluate(std::vector<Running>& running);
  void compare(const Running& r, const std::vector<NodeId>& kept);
  void compare_node(const Running& r, NodeId id, Pos base, std::vector<NodeId>* at);
  void finish(const Running& r, const std::vector<NodeId>& kept);

  llama::LlamaModel& model_;
  std::vector<std::unique_ptr<llama::LlamaModel>> singles_;
  Settings settings_;
  std::mt19937 random_;
  std::vector<std::vector<Token>> texts_;
  Outcome outcome_;
};

}  // namespace outrider::testing
