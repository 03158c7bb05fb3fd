// Each function adds the classes and functions of one area to the addon's exports.
// lib/native/load.ts declares them all; a test compares the two.
#pragma once

#include "binding/napi_setup.h"

namespace gradlink::binding {

void exportBuckets(Napi::Env, Napi::Object exports);
void exportCommunicator(Napi::Env, Napi::Object exports);
void exportGpu(Napi::Env, Napi::Object exports);
void exportKVStore(Napi::Env, Napi::Object exports);
void exportMpi(Napi::Env, Napi::Object exports);
void exportMeasure(Napi::Env, Napi::Object exports);
void exportOptimizer(Napi::Env, Napi::Object exports);
void exportServer(Napi::Env, Napi::Object exports);
void exportWindow(Napi::Env, Napi::Object exports);

}  // namespace gradlink::binding
