/**
 * The sandboxes, before all other parts: their host is a process of its own that needs half a second to attack itself, and
 * the rest can be loaded and opened meanwhile. Whoever needs them waits; none is used before it was judged.
 */
import type { Config } from '../config.ts'
import { driverChoice } from '../sandbox/drivers.ts'
import { createNoSandboxes } from '../sandbox/no-sandboxes.ts'
import { openSandboxes } from '../sandbox/open-sandboxes.ts'
import type { Sandboxes } from '../sandbox/port.ts'
import type { Log } from '../telemetry/log.ts'

export interface Begun {
  /** Rejects where there can be none here. */
  readonly opened: Promise<Sandboxes>
}

/** Resolves when the host is on its way: loading modules would hold that up. */
export async function beginSandboxes({ role, dataDir, sandbox }: Config, log: Log): Promise<Begun> {
  if (role === 'api') return { opened: Promise.resolve(createNoSandboxes(sandbox.driver)) }
  const { memoryMiB, cpus, pids, workspaceMiB, files, outputBytes, pool, maxOpen } = sandbox
  const limits = { memoryMiB, cpus, pids, workspaceMiB, files, outputBytes }
  const { promise: starting, resolve: onStarting } = Promise.withResolvers<void>()
  const opened = openSandboxes({ ...driverChoice(sandbox), dataDir, limits, pool, maxOpen, log, onStarting })
  await Promise.race([starting, opened.catch(() => {})])
  return { opened }
}
