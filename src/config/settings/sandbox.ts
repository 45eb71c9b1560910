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
  const most = `The most that \`policy.sandbox.${name}\` may ask for; default: what \`sandbox.${name}\` is.`
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
    doc: `What makes sandboxes: ${DRIVER_NAMES.map((name) => `\`${name}\` ${DRIVERS[name].summary}`).join(', ')}.`,
  }),
  ...sandboxLimit('memoryMiB', 'Memory of one sandbox, MiB.'),
  ...sandboxLimit('cpus', 'Processor cores of one sandbox; fractions allowed.'),
  ...sandboxLimit('pids', 'Processes and threads of one sandbox.'),
  ...sandboxLimit('workspaceMiB', 'Size of one sandbox’s workspace, MiB.'),
  ...sandboxLimit('files', 'Files, directories and links in one sandbox’s workspace, and as many in its `/tmp`.'),
  ...sandboxLimit('outputBytes', 'Output kept of one tool call, bytes; more is cut from the middle and marked.'),
  whole('sandbox.pool', { min: 0, max: 1000, fallback: 2, doc: 'Warm sandboxes kept ready.' }),
  whole('sandbox.maxOpen', { min: 1, fallback: 64, doc: 'Sandboxes that may stand at once.' }),
  ...DRIVER_NAMES.flatMap((name) => Object.entries(DRIVERS[name].settings).map(driverSetting)),
  section('sandbox.network', {
    must: '`disabled`, `public`, or a list of hosts like api.example.com, *.example.com, example.com:8443',
    schema: networkRules,
    parse: (value) =>
      value === 'disabled' || value === 'public' ? value : value.split(',').map((rule) => rule.trim()),
    fallback: 'public',
    doc: 'The most that a run may ask for as its `network`; by itself a run has none. Whatever it is, addresses that are not public stay closed.',
  }),
  whole('sandbox.networkBytes', {
    min: 0,
    fallback: DEFAULT_LIMITS.networkBytes,
    doc: 'What the sandboxes of one run may carry over their network, both ways together, bytes.',
  }),
]
