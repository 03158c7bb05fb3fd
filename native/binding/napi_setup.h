// The only file that includes napi.h; the macros that shape it are set in sources.cmake.
#pragma once

#include <napi.h>
