// Between the C names and the C++ behind them. In C, `outrider` is a type; in C++, our namespace:
// no file can see both, so what outrider.cc includes may not mention the namespace.
#pragma once

namespace outrider_c {

const char* version() noexcept;
void* create(const char* config_json, char** error) noexcept;
void destroy(void* instance) noexcept;
char* call(void* instance, const char* request_json) noexcept;
void free_string(char* string) noexcept;
int subscribe(void* instance, void (*callback)(void*, const char*), void* user) noexcept;
void set_log(void (*callback)(void*, int, const char*), void* user) noexcept;

}  // namespace outrider_c
