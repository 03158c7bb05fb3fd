// Driver, NVML, NCCL, and each GPU with its actual and possible links.
import { linksDown, linksOf, type Machine } from '../measure/machine/gpus.js';
import { pcieRate } from '../measure/machine/gpu-rates.js';
import type { NativeGpuHealth, NativeGpuInfo } from '../native/gpu.js';
import { bandwidthText } from '../results/units.js';
import type { GpusFound, Probed } from './probes.js';
import type { Finding } from './types.js';

export function machineOf({ gpus, peers }: GpusFound): Machine {
  return {
    gpus,
    peer: (from, to) =>
      peers.find((peer) => peer.from === from && peer.to === to) ?? {
        access: from === to,
        path: null,
      },
  };
}

function cudaVersion(version: number): string {
  return `${String(Math.floor(version / 1000))}.${String(Math.floor((version % 1000) / 10))}`;
}

/** Whether NCCL registers user buffers. */
function registrationText({ ncclRegisters, ncclRegisterOff }: GpusFound['libraries']): string {
  if (ncclRegisters === null) return 'registers no memory (since 2.19)';
  if (ncclRegisterOff) return 'registers no memory: GRADLINK_NCCL_REGISTER=no';
  return ncclRegisters === 'symmetric'
    ? 'registers memory in symmetric windows'
    : 'registers memory, no symmetric windows (since 2.27)';
}

/** Driver, NVML, NCCL and one line per GPU; without a driver only the driver's line. */
export function gpuFindings(probed: Probed<GpusFound>): Finding[] {
  if (!('found' in probed)) {
    const variable = process.env.CUDA_VISIBLE_DEVICES;
    return [
      {
        name: 'driver',
        status: probed.broken ? 'degraded' : 'missing',
        text: (probed.broken ? probed.reason : probed.reason.split(': ')[0]) ?? '',
        advice: probed.broken
          ? 'look at nvidia-smi and the kernel log (dmesg); in a container start it with --gpus all'
          : probed.reason.includes('sees no GPU') && variable !== undefined
            ? `CUDA_VISIBLE_DEVICES is '${variable}': unset it to see all GPUs, or run nvidia-smi -L for their names`
            : 'only needed for GPUs: install the NVIDIA driver; in a container start it with --gpus all',
      },
    ];
  }
  const { libraries, gpus } = probed.found;
  const { driverRelease, driverVersion, nvmlFile, nvmlMissing, ncclFile, ncclVersion } = libraries;
  const machine = machineOf(probed.found);
  const release = driverRelease === null ? '' : `${driverRelease}, `;
  return [
    {
      name: 'driver',
      status: 'ok',
      text: `${release}CUDA ${cudaVersion(driverVersion)} (${libraries.driverFile})`,
      advice: null,
    },
    nvmlMissing === null
      ? { name: 'nvml', status: 'ok', text: nvmlFile ?? '', advice: null }
      : {
          name: 'nvml',
          status: 'missing',
          text: nvmlMissing,
          advice: 'links and health are unknown without it: it comes with the driver',
        },
    ncclFile === null
      ? {
          name: 'nccl',
          status: 'missing',
          text: libraries.ncclMissing ?? 'not found',
          advice:
            'needed for communicators of GPUs: install libnccl2, or name the file in GRADLINK_NCCL_LIBRARY',
        }
      : {
          name: 'nccl',
          status: 'ok',
          text: `${ncclVersion ?? ''} (${ncclFile}), ${registrationText(libraries)}`,
          advice: null,
        },
    ...(gpus.length === 0
      ? [
          {
            name: 'gpus',
            status: 'missing',
            text: 'a driver, but no GPU visible to this process',
            advice: 'see CUDA_VISIBLE_DEVICES and nvidia-smi',
          } as const,
        ]
      : [
          ...visibility(probed.found),
          ...(libraries.isConfidential ? [confidential] : []),
          ...gpus.map((gpu) => gpuFinding(machine, gpu)),
        ]),
  ];
}

const confidential: Finding = {
  name: 'gpus',
  status: 'degraded',
  text: 'confidential computing is on: what passes between GPUs and the host is encrypted',
  advice:
    'copies to and from the host are slower, and the figures of p2p include the time of launches: nvidia-smi conf-compute shows the mode',
};

/** A note if the process does not see all of the machine's GPUs. */
function visibility({ gpus, installed }: GpusFound): Finding[] {
  const seen = new Set(gpus.map(({ pciBusId }) => pciBusId));
  const hidden = installed.filter(({ pciBusId }) => !seen.has(pciBusId));
  const variable = process.env.CUDA_VISIBLE_DEVICES;
  if (hidden.length === 0 && variable === undefined) return [];
  const names = hidden.map(({ pciBusId, uuid }) => uuid ?? pciBusId);
  const setting = `CUDA_VISIBLE_DEVICES ${variable === undefined ? 'is not set' : `is '${variable}'`}`;
  const text = [
    `${String(gpus.length)} visible${installed.length === 0 ? '' : `, ${String(hidden.length)} of ${String(installed.length)} hidden`}`,
    setting,
    ...(hidden.length === 0 ? [] : [`hidden: ${names.join(', ')}`]),
  ];
  return [{ name: 'gpus', status: 'ok', text: text.join('; '), advice: null }];
}

/** NVML identifies a MIG partition by the PCI address of its GPU. */
function partText({ uuid, pciBusId }: NativeGpuInfo): readonly string[] {
  if (uuid?.startsWith('MIG-') !== true) return [];
  return [`${uuid}, a MIG part of the GPU at ${pciBusId}`, 'the other values are of the whole GPU'];
}

interface Complaint {
  readonly text: string;
  readonly advice: string;
}

/** `generation 5 x16`, with the peak rate. */
export function pcieText(generation: number | null, width: number | null): string | null {
  return generation === null || width === null
    ? null
    : `generation ${String(generation)} x${String(width)}`;
}

function pcieComplaint(health: NativeGpuHealth): Complaint | undefined {
  const { pcieWidth: now, maxPcieWidth: most } = health;
  if (now === null || most === null || now >= most) return undefined;
  return {
    text: `PCIe x${String(now)} of x${String(most)}`,
    advice: 'reseat the card or riser, and see what shares the lanes of its slot',
  };
}

const hasKernels = ({ kernels }: NativeGpuInfo) => !kernels.startsWith('none');

function complaintsOf(machine: Machine, gpu: NativeGpuInfo): Complaint[] {
  const { health } = gpu;
  const down = linksDown(machine, gpu.ordinal);
  // Throttling of an idle GPU is normal.
  const held = (health?.throttleReasons ?? []).filter((reason) => !/idle/i.test(reason));
  const pcie = health === null ? undefined : pcieComplaint(health);
  return [
    ...(hasKernels(gpu)
      ? []
      : [
          {
            text: `kernels ${gpu.kernels}`,
            advice:
              'copies work, sums and steps do not: leave this GPU out of --gpus, or update its driver',
          },
        ]),
    ...(gpu.computeMode === 'prohibited'
      ? [
          {
            text: 'its compute mode is PROHIBITED: no process may use it',
            advice: 'nvidia-smi -c DEFAULT',
          },
        ]
      : []),
    ...(pcie === undefined ? [] : [pcie]),
    ...(down > 0
      ? [
          {
            text: `${String(down)} NVLinks fewer than similar GPUs`,
            advice: 'nvidia-smi nvlink -s; reseat the bridge, or reset the GPU',
          },
        ]
      : []),
    ...(held.length > 0
      ? [
          {
            text: `clocks held back: ${held.join(', ')}`,
            advice: 'power and cooling of the machine',
          },
        ]
      : []),
    ...((health?.eccErrors ?? 0) > 0
      ? [
          {
            text: `${String(health?.eccErrors)} memory errors`,
            advice: 'nvidia-smi -q -d ECC; replace the GPU if they continue',
          },
        ]
      : []),
  ];
}

function gpuFinding(machine: Machine, gpu: NativeGpuInfo): Finding {
  const { health } = gpu;
  const links = linksOf(machine, gpu.ordinal);
  const now = health === null ? null : pcieText(health.pcieGeneration, health.pcieWidth);
  const most = health === null ? null : pcieText(health.maxPcieGeneration, health.maxPcieWidth);
  const { maxPcieGeneration = null, maxPcieWidth = null } = health ?? {};
  const rate =
    maxPcieGeneration === null || maxPcieWidth === null
      ? undefined
      : pcieRate(maxPcieGeneration, maxPcieWidth);
  const complaints = complaintsOf(machine, gpu);
  const facts = [
    gpu.name,
    `${(gpu.memoryBytes / 2 ** 30).toFixed(0)} GiB`,
    ...partText(gpu),
    ...(now === null
      ? []
      : [
          now === most || most === null
            ? `PCIe ${now}`
            : `PCIe ${now} now, ${most} possible${health?.pcieGeneration === health?.maxPcieGeneration ? '' : ' (an idle GPU slows its link)'}`,
        ]),
    ...(rate === undefined ? [] : [`${bandwidthText(rate)} to the host`]),
    ...(links === undefined
      ? []
      : [
          `${String(links.active)} NVLinks x ${bandwidthText(links.bytesPerSecond)} = ${bandwidthText(links.active * links.bytesPerSecond)}`,
        ]),
    ...(hasKernels(gpu) ? [`kernels ${gpu.kernels}`] : []),
    ...(gpu.computeMode === 'exclusive' ? ['for one process at a time'] : []),
    ...complaints.map(({ text }) => text),
  ];
  return {
    name: `gpu:${String(gpu.ordinal)}`,
    status: complaints.length > 0 ? 'degraded' : 'ok',
    text: facts.join(', '),
    advice: complaints.length > 0 ? complaints.map(({ advice }) => advice).join('; ') : null,
  };
}
