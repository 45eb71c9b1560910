/**
 * Starts the sandbox host before all other parts. The host is a separate process whose self-test takes half a second; other
 * modules are loaded meanwhile. Callers wait for `opened`: no sandbox is used before the self-test has passed.
 */
import type { Config } from '../config.ts'
import { driverChoice } from '../sandbox/drivers.ts'
import { createNoSandboxes } from '../sandbox/no-sandboxes.ts'
import { openSandboxes } from '../sandbox/open-sandboxes.ts'
import type { Sandboxes } from '../sandbox/port.ts'
import type { Log } from '../telemetry/log.ts'

export interface Begun {
  /** Rejects if this machine cannot run sandboxes. */
  readonly opened: Promise<Sandboxes>
}

/** Resolves when the host process has been spawned: loading modules before would delay that. */
export async function beginSandboxes({ role, dataDir, sandbox }: Config, log: Log): Promise<Begun> {
  if (role === 'api') return { opened: Promise.resolve(createNoSandboxes(sandbox.driver)) }
  const { memoryMiB, cpus, pids, workspaceMiB, files, outputBytes, pool, maxOpen } = sandbox
  const limits = { memoryMiB, cpus, pids, workspaceMiB, files, outputBytes }
  const { promise: starting, resolve: onStarting } = Promise.withResolvers<void>()
  const opened = openSandboxes({ ...driverChoice(sandbox), dataDir, limits, pool, maxOpen, log, onStarting })
  await Promise.race([starting, opened.catch(() => {})])
  return { opened }
}
