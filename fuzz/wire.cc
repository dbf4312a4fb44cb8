// What a host process of a model answers, which a bad model may have taken over; and what such a
// process is asked. The first byte chooses the message.
#include <string>

#include "fuzz/targets.h"
#include "remote/protocol.h"

namespace outrider::fuzz {
namespace {

// What was read whole is written as what reads as the same again.
template <typename T, typename Read, typename View>
void read_and_write(std::string_view bytes, Read read, View view) {
  WireReader first(bytes);
  const T message = read(first);
  if (!first.finished()) return;
  WireWriter written;
  put(written, view(message));
  WireReader second(written.bytes());
  const T again = read(second);
  if (!second.finished()) violated("what was written is not read");
  WireWriter twice;
  put(twice, view(again));
  if (twice.bytes() != written.bytes()) violated("not the same message again");
}

template <typename T, typename Read>
void read_and_write(std::string_view bytes, Read read) {
  read_and_write<T>(bytes, read, [](const T& message) -> const T& { return message; });
}

}  // namespace

void wire(Bytes input) {
  Reader reader(input);
  const std::size_t kind = reader.below(5);
  const std::string_view bytes = text(reader.rest());
  switch (kind) {
    case 0:
      read_and_write<Status>(bytes, read_status);
      break;
    case 1:
      read_and_write<OpenRequest>(bytes, read_open_request);
      break;
    case 2:
      read_and_write<OpenReport>(bytes, read_report);
      break;
    case 3:
      read_and_write<OwnedItem>(bytes, read_item,
                                [](const OwnedItem& item) { return item.view(); });
      break;
    default:
      read_and_write<std::vector<SequenceState>>(
          bytes, read_states, [](const std::vector<SequenceState>& all) { return std::span(all); });
  }
}

}  // namespace outrider::fuzz
