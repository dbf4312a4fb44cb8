// The table that --stats prints, and what other tables and objects are made of, too.
// Tested by stats_table_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "engine/request.h"
#include "model/exactness.h"
#include "model/kernel_use.h"

namespace outrider {

// A few rows "label   value" of at most 80 columns, what is longer goes on in the next line; each
// line ends in a newline. What is said of exactness holds of the text, by the rule that made it.
// `width` is the widest step asked for.
std::string stats_table(const Completion& completion, const Exactness& exactness,
                        const KernelUse& kernels, std::int32_t width);

// Against plain decoding: "about 1.52 times plain decoding". `plain_ms` is what that would have
// taken (SpeculationStats), with what choosing the tokens takes either way; `ms` what this took.
// Empty: not known.
std::string speed_up_text(double plain_ms, double ms);

// What plain decoding would have taken for that text; 0: not known, or it was plain decoding.
double plain_decoding_ms(const SpeculationStats& stats);

// One line of such a table.
std::string table_row(const std::string& label, const std::string& value);

// "Outrider's, avx512-vnni", or "llama.cpp's: " and why.
std::string kernels_text(const KernelUse& kernels);

// "12.3 %", or "-" when `whole` is zero.
std::string percent(double part, double whole);

// "850.1 ms" below ten seconds, else "12.3 s".
std::string duration(double ms);

}  // namespace outrider
