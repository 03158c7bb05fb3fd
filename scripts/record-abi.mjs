#!/usr/bin/env node
// native/test/abi/*.h: what of the ABI of CUDA, NVML and NCCL the package relies on, recorded from their own headers.
//
//   node scripts/record-abi.mjs cuda 13.0=/usr/local/cuda/include
//   node scripts/record-abi.mjs nccl 2.18.1=FOLDER 2.30.7=FOLDER ... -I /usr/local/cuda/include
//
// Each folder has the header of that version; a number or a prototype that differs between versions is an error.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const offsets = (type, fields) => fields.map((field) => `offsetof(${type}, ${field})`);
const numbered = (prefix, names) => names.map((name) => `${prefix}${name}`);

/** Functions come from the macros of our own tables; numbers are listed. */
const libraries = {
  cuda: {
    header: 'cuda.h',
    tables: 'native/cuda/driver.h',
    prefix: 'cu',
    numbers: [
      'sizeof(CUdevice)',
      'sizeof(CUdeviceptr)',
      'sizeof(CUuuid)',
      ...numbered('CUDA_', [
        'SUCCESS',
        'ERROR_OUT_OF_MEMORY',
        'ERROR_DEVICE_UNAVAILABLE',
        'ERROR_NO_DEVICE',
        'ERROR_INVALID_DEVICE',
        'ERROR_NO_BINARY_FOR_GPU',
        'ERROR_ECC_UNCORRECTABLE',
        'ERROR_INVALID_PTX',
        'ERROR_JIT_COMPILER_NOT_FOUND',
        'ERROR_UNSUPPORTED_PTX_VERSION',
        'ERROR_JIT_COMPILATION_DISABLED',
        'ERROR_NOT_READY',
        'ERROR_PEER_ACCESS_ALREADY_ENABLED',
        'ERROR_PEER_ACCESS_NOT_ENABLED',
        'ERROR_TOO_MANY_PEERS',
      ]),
      ...numbered('CU_DEVICE_ATTRIBUTE_', [
        'MULTIPROCESSOR_COUNT',
        'COMPUTE_MODE',
        'MEMORY_CLOCK_RATE',
        'GLOBAL_MEMORY_BUS_WIDTH',
        'L2_CACHE_SIZE',
        'MAX_THREADS_PER_MULTIPROCESSOR',
        'ASYNC_ENGINE_COUNT',
        'COMPUTE_CAPABILITY_MAJOR',
        'COMPUTE_CAPABILITY_MINOR',
      ]),
      'CU_COMPUTEMODE_PROHIBITED',
      'CU_COMPUTEMODE_EXCLUSIVE_PROCESS',
      'CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK',
      'CU_STREAM_NON_BLOCKING',
      'CU_EVENT_DISABLE_TIMING',
      'CU_MEMHOSTALLOC_PORTABLE',
      'CU_MEMHOSTALLOC_DEVICEMAP',
      'CUDA_ERROR_PEER_ACCESS_UNSUPPORTED',
      'CU_STREAM_CAPTURE_MODE_RELAXED',
    ],
  },
  nvml: {
    header: 'nvml.h',
    tables: 'native/cuda/nvml.h',
    prefix: 'nvml',
    numbers: [
      'sizeof(nvmlPciInfo_t)',
      ...offsets('nvmlPciInfo_t', ['busIdLegacy', 'domain', 'bus', 'device', 'busId']),
      'sizeof(nvmlFieldValue_t)',
      ...offsets('nvmlFieldValue_t', ['fieldId', 'scopeId', 'valueType', 'nvmlReturn', 'value']),
      'sizeof(nvmlUtilization_t)',
      ...offsets('nvmlUtilization_t', ['gpu', 'memory']),
      'sizeof(nvmlEventData_t)',
      ...offsets('nvmlEventData_t', ['device', 'eventType', 'eventData']),
      'nvmlEventTypeXidCriticalError',
      ...numbered('NVML_', [
        'SUCCESS',
        'CLOCK_SM',
        'CLOCK_MEM',
        'TEMPERATURE_GPU',
        'AFFINITY_SCOPE_NODE',
        'MEMORY_ERROR_TYPE_CORRECTED',
        'MEMORY_ERROR_TYPE_UNCORRECTED',
        'VOLATILE_ECC',
        'NVLINK_DEVICE_TYPE_SWITCH',
        'NVLINK_ERROR_COUNT',
        'FI_DEV_NVLINK_SPEED_MBPS_COMMON',
        'FI_DEV_NVLINK_GET_SPEED',
        'FI_DEV_C2C_LINK_COUNT',
        'FI_DEV_C2C_LINK_GET_STATUS',
        'FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS',
        'FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS',
        'FI_DEV_NVLINK_COUNT_RCV_ERRORS',
        'FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS',
        'FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS',
        'FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS',
        'FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS',
        'VALUE_TYPE_DOUBLE',
        'VALUE_TYPE_UNSIGNED_INT',
        'VALUE_TYPE_UNSIGNED_LONG',
        'VALUE_TYPE_UNSIGNED_LONG_LONG',
        'VALUE_TYPE_SIGNED_LONG_LONG',
        'VALUE_TYPE_SIGNED_INT',
        'VALUE_TYPE_UNSIGNED_SHORT',
        'TOPOLOGY_INTERNAL',
        'TOPOLOGY_SINGLE',
        'TOPOLOGY_MULTIPLE',
        'TOPOLOGY_HOSTBRIDGE',
        'TOPOLOGY_NODE',
        'TOPOLOGY_SYSTEM',
      ]),
      ...numbered('nvmlClocksThrottleReason', [
        'SwPowerCap',
        'HwSlowdown',
        'SyncBoost',
        'SwThermalSlowdown',
        'HwThermalSlowdown',
        'HwPowerBrakeSlowdown',
      ]),
    ],
  },
  nccl: {
    header: 'nccl.h',
    tables: 'native/nccl/library.h',
    prefix: 'nccl',
    numbers: [
      ...numbered('nccl', [
        'Success',
        'UnhandledCudaError',
        'SystemError',
        'InternalError',
        'InvalidArgument',
        'InvalidUsage',
        'RemoteError',
        'InProgress',
        'Timeout',
        'Int8',
        'Uint8',
        'Int32',
        'Uint32',
        'Int64',
        'Uint64',
        'Float16',
        'Float32',
        'Float64',
        'Bfloat16',
        'Float8e4m3',
        'Float8e5m2',
        'Sum',
        'Prod',
        'Max',
        'Min',
        'Avg',
        'ScalarHostImmediate',
      ]),
      'sizeof(ncclUniqueId)',
      'NCCL_CONFIG_UNDEF_INT',
      'NCCL_API_MAGIC',
      'NCCL_WIN_COLL_SYMMETRIC',
      ...offsets('ncclConfig_t', [
        'size',
        'magic',
        'version',
        'blocking',
        'cgaClusterSize',
        'minCTAs',
        'maxCTAs',
        'netName',
        'splitShare',
        'trafficClass',
        'commName',
        'collnetEnable',
        'CTAPolicy',
        'shrinkShare',
        'nvlsCTAs',
        'nChannelsPerNetPeer',
        'nvlinkCentricSched',
        'graphUsageMode',
        'numRmaCtx',
        'maxP2pPeers',
        'graphStreamOrdering',
      ]),
      'sizeof(ncclSimInfo_t)',
      ...offsets('ncclSimInfo_t', ['size', 'magic', 'version', 'estimatedTime']),
    ],
  },
};

function usage() {
  process.stderr.write('record-abi.mjs cuda|nvml|nccl VERSION=FOLDER ... [-I FOLDER]\n');
  process.exit(2);
}

/** Exported names, as our table has them. */
function functionsOf({ tables, prefix }) {
  const text = readFileSync(join(root, tables), 'utf8');
  return [...text.matchAll(new RegExp(`X\\((${prefix}[A-Z]\\w+),`, 'g'))].map(([, name]) => name);
}

/** Whether the header has all words of an expression; those of C++ itself count as there. */
function has(words, expression) {
  return expression
    .match(/\w+/g)
    .every((word) => /^(sizeof|offsetof)$/.test(word) || words.has(word));
}

function probe(library, folder, includes) {
  const { header, numbers } = library;
  const text = readFileSync(join(folder, header), 'utf8');
  const words = new Set(text.match(/\w+/g));
  // A base name stands for its newest version.
  const functions = functionsOf(library).filter((name) => has(words, name.replace(/_v\d+$/, '')));
  const lines = [
    `#include <${header}>`,
    '#include "test/abi/signature.h"',
    '#include <cstddef>',
    '#include <iostream>',
    'using namespace gradlink::test;',
    'int main() {',
    ...functions.map(
      (name) => `std::cout << "f ${name} " << Signature<decltype(&${name})>::text() << "\\n";`,
    ),
    ...numbers
      .filter((name) => has(words, name))
      .map((name) => `std::cout << "n ${name} " << static_cast<long long>(${name}) << "\\n";`),
    '}',
  ];
  const work = mkdtempSync(join(tmpdir(), 'gradlink-abi-'));
  try {
    const source = join(work, 'probe.cc');
    const program = join(work, 'probe');
    writeFileSync(source, lines.join('\n'));
    const folders = [folder, join(root, 'native'), ...includes].flatMap((one) => ['-I', one]);
    execFileSync('c++', ['-std=c++20', '-w', ...folders, source, '-o', program]);
    return execFileSync(program, { encoding: 'utf8' }).trim().split('\n');
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const [name = '', ...args] = process.argv.slice(2);
const library = libraries[name] ?? usage();
const at = args.indexOf('-I');
const includes = at < 0 ? [] : args.splice(at, 2).slice(1);
const versions = args.map((text) => text.split('='));
if (versions.length === 0 || versions.some(({ length }) => length !== 2)) usage();

const found = new Map();
for (const [version, folder] of versions) {
  for (const line of probe(library, folder, includes)) {
    const [, kind, what, value] = /^(.) (.*) (\S+)$/.exec(line);
    const known = found.get(what);
    if (known === undefined) found.set(what, { kind, value, since: version });
    else if (known.value !== value) {
      throw new Error(`${what}: ${known.value} in ${known.since}, ${value} in ${version}`);
    }
  }
}
const wanted = [...functionsOf(library), ...library.numbers];
const absent = wanted.filter((one) => !found.has(one));
if (absent.length > 0) process.stderr.write(`in no header: ${absent.join(', ')}\n`);
const table = (kind, type, title, quote) => [
  `inline constexpr ${type} k${title}[] = {`,
  ...[...found]
    .filter(([, one]) => one.kind === kind)
    .map(([what, { value, since }]) => `    {"${what}", ${quote(value)}, "${since}"},`),
  '};',
];
/** As clang-format would break a comment. */
const wrapped = (text) => text.match(/.{1,97}(?= |$)/g).map((line) => `// ${line.trim()}`);
const title = name[0].toUpperCase() + name.slice(1);
writeFileSync(
  join(root, `native/test/abi/${name}.h`),
  [
    ...wrapped(`Recorded by scripts/record-abi.mjs from ${library.header}`),
    ...wrapped(`of ${versions.map(([version]) => version).join(', ')}.`),
    '#pragma once',
    '',
    '#include "test/abi/signature.h"',
    '',
    'namespace gradlink::test::recorded {',
    '',
    '// clang-format off',
    ...table('f', 'RecordedFunction', `${title}Functions`, (value) => `"${value}"`),
    '',
    ...table('n', 'RecordedNumber', `${title}Numbers`, (value) => value),
    '// clang-format on',
    '',
    `}  // namespace gradlink::test::recorded`,
    '',
  ].join('\n'),
);
