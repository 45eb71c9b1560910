/** Sandboxes: their driver, their size and their network. */
import { DEFAULT_LIMITS, type SandboxLimits } from '../../domain/limits.ts'
import type { DriverSetting } from '../../sandbox/driver.ts'
import { DRIVER_NAMES, DRIVERS } from '../../sandbox/drivers.ts'
import { networkRules } from '../network-rules.ts'
import { choice, filePath, fraction, type Setting, section, text, whole } from '../setting.ts'

export const SANDBOX_LIMITS = Object.keys(DEFAULT_LIMITS.sandbox) as (keyof SandboxLimits)[]

const sandboxLimit = (name: keyof SandboxLimits, doc: string): Setting[] => {
  const { min, default: fallback } = DEFAULT_LIMITS.sandbox[name]
  const number = name === 'cpus' ? fraction : whole
  const most = `Maximum of \`policy.sandbox.${name}\` in a request. Default: \`sandbox.${name}\`.`
  return [number(`sandbox.${name}`, { min, fallback, doc }), number(`sandbox.max.${name}`, { min, doc: most })]
}

/** A driver's own setting. */
function driverSetting([name, setting]: [string, DriverSetting]): Setting {
  const path = `sandbox.${name}`
  switch (setting.kind) {
    case 'choice':
      return choice(path, setting)
    case 'text':
      return text(path, setting)
    case 'path':
      return filePath(path, setting)
  }
}

export const SANDBOX_SETTINGS: readonly Setting[] = [
  choice('sandbox.driver', {
    env: 'ERRAND_SANDBOX',
    values: DRIVER_NAMES,
    fallback: 'bubblewrap',
    doc: `Sandbox driver: ${DRIVER_NAMES.map((name) => `\`${name}\` ${DRIVERS[name].summary}`).join(', ')}.`,
  }),
  ...sandboxLimit('memoryMiB', 'Memory of a sandbox, in MiB.'),
  ...sandboxLimit('cpus', 'Processor cores of a sandbox, as a number that may have a fraction.'),
  ...sandboxLimit('pids', 'Number of processes and threads of a sandbox.'),
  ...sandboxLimit('workspaceMiB', 'Size of a sandbox’s workspace, in MiB.'),
  ...sandboxLimit(
    'files',
    'Number of files, directories and links in a sandbox’s workspace, and separately in its `/tmp`.',
  ),
  ...sandboxLimit(
    'outputBytes',
    'Output of a tool call in the log, in bytes. From longer output the middle is removed, and a mark shows where. A file in the sandbox has the whole output.',
  ),
  whole('sandbox.pool', {
    min: 0,
    max: 1000,
    fallback: 2,
    doc: 'Number of sandboxes that are kept ready for new runs.',
  }),
  whole('sandbox.maxOpen', { min: 1, fallback: 64, doc: 'Number of sandboxes that may exist at the same time.' }),
  ...DRIVER_NAMES.flatMap((name) => Object.entries(DRIVERS[name].settings).map(driverSetting)),
  section('sandbox.network', {
    must: '`disabled`, `public`, or a list of hosts like api.example.com, *.example.com, example.com:8443',
    schema: networkRules,
    parse: (value) =>
      value === 'disabled' || value === 'public' ? value : value.split(',').map((rule) => rule.trim()),
    fallback: 'public',
    doc: 'Maximum `network` of a run. Without `network` a run has no network access. Private addresses are blocked with every value.',
  }),
  whole('sandbox.networkBytes', {
    min: 0,
    fallback: DEFAULT_LIMITS.networkBytes,
    doc: 'Network traffic of the sandboxes of one run, in bytes, both directions together.',
  }),
]
