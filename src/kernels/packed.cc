#include "kernels/packed.h"

#include <algorithm>
#include <cstring>

#include "kernels/block.h"

namespace outrider::kernels {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr int kVectors = 8;  // of a group, unpacked

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// One row's blocks of a strip, put between those of the other rows.
class RowWriter {
 public:
  RowWriter(const PackedLayout& layout, int row, std::uint8_t flip, std::uint8_t* strip)
      : format_(weight_format(layout.type)),
        rows_(layout.strip_rows),
        row_(row),
        flip_(flip),
        headers_(strip),
        values_(strip + layout.header_bytes) {}

  void add(const Block& block) {
    add_header(block);
    for (int group = 0; group < format_.block_weights / kGroup; ++group) {
      add_group(block.values.data() + kGroup * group);
    }
  }

 private:
  void add_header(const Block& block) {
    const int half_bytes = 2 * format_.halves;
    for (int i = 0; i < format_.header_bytes; ++i) {
      const int at = i < half_bytes ? i / 2 * 2 * rows_ + 2 * row_ + i % 2 : i * rows_ + row_;
      headers_[at] = block.header[static_cast<std::size_t>(i)];
    }
    headers_ += format_.header_bytes * rows_;
  }

  void add_group(const std::uint8_t* group) {
    const int bits = format_.value_bits;
    if (bits == 8) return add_bytes(group);
    add_plane(group, bits >= 4 ? 4 : 2, 0);
    if (bits == 5) add_plane(group, 1, 4);
    if (bits == 6) add_plane(group, 2, 4);
    if (bits == 3) add_plane(group, 1, 2);
  }

  void add_bytes(const std::uint8_t* group) {
    const std::uint32_t flip = flip_ * kEachByte;
    for (int j = 0; j < kVectors; ++j) put(j, word(group, j) ^ flip);
    values_ += kVectors * 4 * rows_;
  }

  // `width` bits of each value, from bit `from` on.
  void add_plane(const std::uint8_t* group, int width, int from) {
    const std::uint32_t mask = ((1U << width) - 1U) * kEachByte;
    const int shared = 8 / width;  // vectors of the group in one of the plane
    for (int vector = 0; vector < width; ++vector) {
      std::uint32_t bits = 0;
      for (int i = 0; i < shared; ++i) {
        bits |= ((word(group, vector * shared + i) >> from) & mask) << (width * i);
      }
      put(vector, bits);
    }
    values_ += width * 4 * rows_;
  }

  // Four weights at a time: what a row has in one vector.
  static std::uint32_t word(const std::uint8_t* group, int vector) {
    std::uint32_t four = 0;
    std::memcpy(&four, group + 4 * vector, sizeof four);
    return four;
  }
  void put(int vector, std::uint32_t four) {
    std::memcpy(values_ + (vector * rows_ + row_) * 4, &four, sizeof four);
  }

  static constexpr std::uint32_t kEachByte = 0x01010101U;

  const WeightFormat& format_;
  int rows_;
  int row_;
  std::uint8_t flip_;
  std::uint8_t* headers_;
  std::uint8_t* values_;
};

void pack_floats(const PackedLayout& layout, const std::uint8_t* rows, std::int64_t strip,
                 std::uint8_t* packed) {
  const auto size = static_cast<std::size_t>(weight_format(layout.type).block_bytes);
  const auto stride = static_cast<std::size_t>(layout.strip_rows);
  const std::int64_t first = strip * layout.strip_rows;
  const std::int64_t count = std::min<std::int64_t>(layout.strip_rows, layout.n_rows - first);
  for (std::int64_t r = 0; r < count; ++r) {
    const std::uint8_t* row = rows + static_cast<std::size_t>(first + r) * layout.row_bytes;
    std::uint8_t* to = packed + static_cast<std::size_t>(r) * size;
    for (std::int64_t k = 0; k < layout.n_columns; ++k) {
      std::memcpy(to, row, size);
      row += size;
      to += stride * size;
    }
  }
}

void pack_blocks(const PackedLayout& layout, const std::uint8_t* rows, std::int64_t strip,
                 std::uint8_t flip, std::uint8_t* packed) {
  const WeightFormat& format = weight_format(layout.type);
  const std::int64_t n_blocks = layout.n_columns / format.block_weights;
  Block block{};
  for (int r = 0; r < layout.strip_rows; ++r) {
    RowWriter writer(layout, r, flip, packed);
    const std::int64_t row = strip * layout.strip_rows + r;
    const std::uint8_t* bytes = rows + static_cast<std::size_t>(row) * layout.row_bytes;
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      if (row < layout.n_rows) {
        read_block(layout.type, bytes, &block);
        bytes += format.block_bytes;
      } else if (b == 0) {
        block = Block{};
      }
      writer.add(block);
    }
  }
}

}  // namespace

PackedLayout::PackedLayout(WeightType the_type, std::int64_t rows, std::int64_t columns,
                           int rows_of_strip)
    : type(the_type),
      n_rows(rows),
      n_columns(columns),
      strip_rows(rows_of_strip),
      n_strips((rows + rows_of_strip - 1) / rows_of_strip) {
  const WeightFormat& format = weight_format(type);
  const auto lanes = static_cast<std::size_t>(strip_rows);
  const auto blocks = static_cast<std::size_t>(n_columns / format.block_weights);
  const auto value_bits = static_cast<std::size_t>(format.value_bits);
  header_bytes = aligned(blocks * static_cast<std::size_t>(format.header_bytes) * lanes);
  strip_bytes =
      header_bytes + aligned(static_cast<std::size_t>(n_columns) * value_bits / 8 * lanes);
  row_bytes = blocks * static_cast<std::size_t>(format.block_bytes);
}

void pack_strips(const PackedLayout& layout, const std::uint8_t* rows, std::int64_t begin,
                 std::int64_t end, std::uint8_t flip, std::uint8_t* packed) {
  for (std::int64_t strip = begin; strip < end; ++strip) {
    std::uint8_t* to = packed + static_cast<std::size_t>(strip) * layout.strip_bytes;
    std::memset(to, 0, layout.strip_bytes);
    if (weight_format(layout.type).values == Values::kFloat) {
      pack_floats(layout, rows, strip, to);
    } else {
      pack_blocks(layout, rows, strip, flip, to);
    }
  }
}

}  // namespace outrider::kernels
