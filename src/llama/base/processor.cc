#include "llama/base/processor.h"

#include <string>

#include "ggml-cpu.h"

namespace outrider::llama {

Status check_processor() {
  std::string missing;
  const auto need = [&missing](const char* name, int compiled, bool present) {
    if (compiled != 0 && !present) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
#if defined(__x86_64__) && defined(__GNUC__)
  // On x86 ggml's functions say what it was compiled for, not what is there.
  __builtin_cpu_init();
  need("SSSE3", ggml_cpu_has_ssse3(), __builtin_cpu_supports("ssse3"));
  need("AVX", ggml_cpu_has_avx(), __builtin_cpu_supports("avx"));
  need("AVX2", ggml_cpu_has_avx2(), __builtin_cpu_supports("avx2"));
  need("FMA", ggml_cpu_has_fma(), __builtin_cpu_supports("fma"));
  need("BMI2", ggml_cpu_has_bmi2(), __builtin_cpu_supports("bmi2"));
  need("AVX512", ggml_cpu_has_avx512(),
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"));
  need("AVX512-VNNI", ggml_cpu_has_avx512_vnni(), __builtin_cpu_supports("avx512vnni"));
#else
  (void)need;
#endif
  if (missing.empty()) return Status();
  return Status(StatusCode::kUnsupported,
                "this build of Outrider needs a processor with " + missing +
                    ", which this one has not; './dev build' on this machine makes one for it");
}

}  // namespace outrider::llama
