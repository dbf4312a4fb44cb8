// CRC-32C, the checksum of every part of a store file.
//
// The Castagnoli polynomial 0x1EDC6F41 (reflected: 0x82F63B78), as in iSCSI (RFC 3720, appendix
// B.4), ext4 and Btrfs: it finds every error of up to 32 bits in a row, so every flipped byte, and
// every one of up to 3 single bits within the 4 KiB blocks that it is used for (Koopman 2002).
// Table-driven, eight bytes at a time ("slicing by 8", Kounavis and Berry 2005), without
// special instructions. It finds accidents, not forged files: what is read from a
// file is checked against its ranges all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace outrider {

// The checksum of `bytes`; with `before`, that of the bytes that `before` is the checksum of and
// these behind them. crc32c("123456789") == 0xE3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace outrider
