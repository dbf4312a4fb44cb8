#include "llama/model/device_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

constexpr std::uint64_t kTotal = std::uint64_t{16} << 30;

TEST(DeviceMemory, AContextThatLeavesADeviceTooLittleToComputeWithIsRefused) {
  const DeviceMemory roomy{.name = "CUDA0", .free = kDeviceMargin, .total = kTotal};
  const DeviceMemory full{.name = "CUDA1", .free = kDeviceMargin - 1, .total = kTotal};
  const DeviceMemory silent{.name = "CUDA2", .free = 0, .total = 0};
  EXPECT_TRUE(check_device_memory({}).ok());
  EXPECT_TRUE(check_device_memory(std::vector{roomy, silent}).ok());
  const Status status = check_device_memory(std::vector{roomy, silent, full});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << "so that a catalog makes room";
  for (const char* const word : {"CUDA1", "0.25 GiB", "(gpu_layers)", "(ctx)"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
}

class DeviceMemoryTest : public testing::TinyModelTest {};

TEST_F(DeviceMemoryTest, AModelOnTheProcessorHasNoDevices) {
  EXPECT_TRUE(devices_of(make({.n_ctx = 64})->handle()).empty());
}

}  // namespace
}  // namespace outrider::llama
