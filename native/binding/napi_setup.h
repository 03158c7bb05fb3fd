// The only file that includes napi.h; its macros are set in sources.cmake.
#pragma once

#include <napi.h>
