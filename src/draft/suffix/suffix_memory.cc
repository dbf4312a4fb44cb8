#include "draft/suffix/suffix_memory.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <utility>

namespace outrider {

SuffixMemory::SuffixMemory(std::size_t max_tokens)
    : max_tokens_(max_tokens), space_tokens_(max_tokens / 4), part_tokens_(space_tokens_ / kParts) {
  assert(max_tokens >= kLeastTokens && max_tokens <= kMostTokens);
}

void SuffixMemory::clear() {
  spaces_.clear();
  tokens_ = 0;
  bytes_ = 0;
}

SuffixMemory::Stats SuffixMemory::stats() const {
  return {.max_tokens = max_tokens_,
          .namespaces = spaces_.size(),
          .tokens = tokens_,
          .memory_bytes = bytes_ + spaces_.size() * sizeof(Spaces::value_type)};
}

std::vector<SuffixMemory::Spaces::const_iterator> SuffixMemory::by_use() const {
  std::vector<Spaces::const_iterator> order;
  for (Spaces::const_iterator it = spaces_.begin(); it != spaces_.end(); ++it) order.push_back(it);
  std::sort(order.begin(), order.end(), [](Spaces::const_iterator a, Spaces::const_iterator b) {
    return a->second.last_used < b->second.last_used;
  });
  return order;
}

std::vector<Token> SuffixMemory::all_of(const Space& space) {
  std::vector<Token> tokens;
  tokens.reserve(space.tokens);
  for (const std::unique_ptr<Part>& part : space.parts) {
    tokens.insert(tokens.end(), part->tokens.begin(), part->tokens.end());
  }
  return tokens;
}

void SuffixMemory::for_each_space(const VisitSpace& visit) const {
  for (const Spaces::const_iterator it : by_use()) visit(it->first, all_of(it->second));
}

void SuffixMemory::mark_known() {
  for (auto& [name, space] : spaces_) space.known = space.tokens;
  known_at_ = clock_;
}

void SuffixMemory::for_each_new(const VisitSpace& visit) const {
  for (const Spaces::const_iterator it : by_use()) {
    if (it->second.last_used <= known_at_) continue;
    const std::vector<Token> tokens = all_of(it->second);
    visit(it->first, std::span(tokens).subspan(it->second.known));
  }
}

void SuffixMemory::count_bytes(Part& part) {
  const std::size_t now = sizeof(Part) + part.tokens.capacity() * sizeof(Token) +
                          part.index.memory_bytes() - sizeof(SuffixIndex);
  bytes_ += now - part.bytes;  // may wrap around, and back
  part.bytes = now;
}

SuffixMemory::Space& SuffixMemory::space_of(std::string_view name) {
  const Spaces::iterator found = spaces_.find(name);
  if (found != spaces_.end()) return found->second;
  Space& space = spaces_[std::string(name)];
  space.number = ++clock_;
  space.last_used = ++clock_;
  while (spaces_.size() > kMaxNamespaces) {
    const Spaces::iterator oldest = least_recently_used(&space);
    while (!oldest->second.parts.empty()) drop_oldest(oldest->second);
    spaces_.erase(oldest);
  }
  return space;
}

SuffixMemory::Spaces::iterator SuffixMemory::least_recently_used(const Space* except) {
  Spaces::iterator best = spaces_.end();
  for (Spaces::iterator it = spaces_.begin(); it != spaces_.end(); ++it) {
    if (&it->second == except) continue;
    if (best == spaces_.end() || it->second.last_used < best->second.last_used) best = it;
  }
  return best;
}

void SuffixMemory::drop_oldest(Space& space) {
  const Part& part = *space.parts.front();
  space.tokens -= part.tokens.size();
  space.known -= std::min(space.known, part.tokens.size());
  tokens_ -= part.tokens.size();
  bytes_ -= part.bytes;
  space.parts.pop_front();
  space.version = ++clock_;
}

// Needs no memory.
void SuffixMemory::make_room(const Space& growing) {
  while (tokens_ > max_tokens_) {
    const Spaces::iterator oldest = least_recently_used(&growing);
    assert(oldest != spaces_.end());  // one alone has a quarter at most
    if (!oldest->second.parts.empty()) drop_oldest(oldest->second);
    if (oldest->second.parts.empty()) spaces_.erase(oldest);
  }
}

// The counts are right after every part, also when there is no memory for the next one.
void SuffixMemory::append(Space& space, std::span<const Token> tokens) {
  while (!tokens.empty()) {
    if (space.parts.empty() || space.parts.back()->tokens.size() == part_tokens_) {
      space.parts.push_back(std::make_unique<Part>());
    }
    Part& part = *space.parts.back();
    const std::size_t n = std::min(tokens.size(), part_tokens_ - part.tokens.size());
    part.tokens.insert(part.tokens.end(), tokens.begin(),
                       tokens.begin() + static_cast<std::ptrdiff_t>(n));
    space.tokens += n;
    tokens_ += n;
    count_bytes(part);
    while (space.tokens > space_tokens_) drop_oldest(space);
    make_room(space);
    tokens = tokens.subspan(n);
  }
}

std::size_t SuffixMemory::add(std::string_view name, std::span<const Token> text) {
  if (text.size() < kShortest) return 0;
  // Room for the mark, and for a part that is not full.
  const std::size_t most = space_tokens_ - part_tokens_ - 1;
  if (text.size() > most) text = text.last(most);
  Space& space = space_of(name);
  space.last_used = ++clock_;
  append(space, text);
  append(space, std::array{kTextEnd});
  return text.size();
}

void SuffixMemory::add_all(std::string_view name, std::span<const Token> texts) {
  const Spaces::iterator found = spaces_.find(name);
  if (found != spaces_.end()) found->second.last_used = ++clock_;
  while (!texts.empty()) {
    const auto mark = std::find(texts.begin(), texts.end(), kTextEnd);
    const std::size_t n = static_cast<std::size_t>(mark - texts.begin());
    add(name, texts.first(n));
    texts = texts.subspan(std::min(n + 1, texts.size()));
  }
}

void SuffixMemory::read_some(Space& space) {
  std::size_t left = kReadAtOnce;
  for (const std::unique_ptr<Part>& part : space.parts) {
    const std::size_t n = std::min(left, part->tokens.size() - part->index.size());
    if (n == 0) continue;
    const std::size_t begin = part->index.size();
    for (std::size_t i = begin; i < begin + n; ++i) part->index.append(part->tokens[i]);
    count_bytes(*part);
    space.version = ++clock_;
    left -= n;
  }
}

void SuffixMemory::look_up(std::string_view name, std::span<const Token> text, Cursor& cursor) {
  const Spaces::iterator found = spaces_.find(name);
  if (found == spaces_.end()) {
    cursor = Cursor();
    return;
  }
  Space& space = found->second;
  space.last_used = ++clock_;
  read_some(space);
  const bool same = cursor.space == space.number && cursor.version == space.version &&
                    cursor.read <= text.size() && text.size() - cursor.read <= kRetrace;
  if (!same) {
    cursor.space = space.number;
    cursor.version = space.version;
    cursor.read = text.size() - std::min(text.size(), kRetrace);
    cursor.places.clear();
    for (std::size_t i = space.parts.size(); i-- > 0;) {
      if (space.parts[i]->index.size() > 0) {
        cursor.places.push_back({.index = &space.parts[i]->index, .context = {}});
      }
    }
  }
  for (; cursor.read < text.size(); ++cursor.read) {
    for (Place& place : cursor.places) {
      place.context = place.index->advance(place.context, text[cursor.read]);
    }
  }
}

std::string SuffixMemory::check_integrity() const {
  std::size_t tokens = 0;
  std::size_t bytes = 0;
  for (const auto& [name, space] : spaces_) {
    std::size_t own = 0;
    for (std::size_t i = 0; i < space.parts.size(); ++i) {
      const Part& part = *space.parts[i];
      own += part.tokens.size();
      bytes += part.bytes;
      const bool last = i + 1 == space.parts.size();
      if (!last && part.tokens.size() != part_tokens_) return "a part that is not full: " + name;
      if (part.index.size() > part.tokens.size()) return "more read than there is: " + name;
      if (!std::equal(part.index.text().begin(), part.index.text().end(), part.tokens.begin())) {
        return "another text was read: " + name;
      }
      const std::string broken = part.index.check_integrity();
      if (!broken.empty()) return broken + ": " + name;
    }
    if (own != space.tokens) return "wrong count of tokens: " + name;
    if (own > space_tokens_) return "too much in one namespace: " + name;
    if (space.known > own) return "more is known than there is: " + name;
    if (own == 0) return "an empty namespace: " + name;
    tokens += own;
  }
  if (tokens != tokens_ || tokens > max_tokens_) return "wrong count of tokens";
  if (bytes != bytes_) return "wrong count of bytes";
  return spaces_.size() <= kMaxNamespaces ? "" : "too many namespaces";
}

}  // namespace outrider
