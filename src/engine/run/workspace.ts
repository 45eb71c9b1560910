/**
 * The sandbox of a run: created on first use, with the input files in it before any code runs. Its output files are stored at
 * the end, and it is destroyed with the run.
 */
import type { Blobs } from '../../blobs/port.ts'
import type { StoredFile } from '../../domain/interaction.ts'
import {
  type Mount,
  type Sandbox,
  SandboxError,
  type Sandboxes,
  type SandboxLimits,
  type SandboxSpec,
} from '../../sandbox/port.ts'
import type { Companion } from '../../tools/port.ts'
import { aborted, collectOutputs, type Outputs, type OutputsOptions } from './outputs.ts'
import type { RestoredSandboxState } from './restore.ts'

/** A sandbox ends itself this long after its run's deadline, in case no worker destroys it. */
const LIFETIME_SLACK_MS = 60_000
const REOPEN_MS = 10_000
const LOST = 'a sandbox of this run was lost, and the output files in it'

export interface WorkspaceOptions {
  readonly sandboxes: Sandboxes
  readonly blobs: Blobs
  readonly interactionId: string
  readonly epoch: number
  readonly limits: SandboxLimits
  /** Directories of this machine that the main sandbox shows. */
  readonly mounts: () => Promise<readonly Mount[]>
  readonly outputLimits: OutputsOptions['limits']
  readonly remainingMs: () => number
  readonly signal: AbortSignal
  /** The sandbox that an earlier worker left. */
  readonly inherited: RestoredSandboxState
  /** Called with the main sandbox, new or resumed, before anything runs in it. */
  readonly connect: (sandbox: Sandbox) => Promise<void>
  /** An earlier worker has stored the output files. */
  readonly outputsTaken: boolean
  /** Awaited before a sandbox is created, and when it is ready or resumed, before code runs in it. */
  readonly onProvision: (state: 'started' | 'ready' | 'resumed') => Promise<void>
}

export interface Workspace {
  /** Opens the sandbox. A new one gets the input files, and is `preloaded` if possible. Throws SandboxError. */
  open(inputFiles: readonly StoredFile[], preloaded?: boolean): Promise<Sandbox>
  /**
   * Forgets the lost sandbox of a call: the next `open` creates another. Two calls may lose the same one: no effect if a new
   * one was opened since. Undefined: the call did not open it itself.
   */
  forget(sandbox: Sandbox | undefined): void
  /** Opens a companion sandbox by name: a new one, or the one that still exists. Throws SandboxError. */
  openCompanion(companion: Companion): Promise<Sandbox>
  /** True if a sandbox was ever opened. */
  opened(): boolean
  /**
   * Stores everything in outputs/ until `signal` aborts. Never throws because of the sandbox's contents. Undefined if an earlier
   * worker stored them.
   */
  collect(signal: AbortSignal): Promise<Outputs | undefined>
  /** Resolves when the sandbox is gone. */
  destroy(): Promise<void>
}

export function createWorkspace(options: WorkspaceOptions): Workspace {
  const { sandboxes, interactionId, epoch, signal } = options
  let opening: Promise<Sandbox> | undefined
  /** The sandbox that `opening` has resolved to. */
  let current: Sandbox | undefined
  let opened = options.inherited !== 'none'
  // An earlier worker may have left companions, which are not in the log.
  let mayExist = opened || epoch > 1
  let state = options.inherited
  let lost = false

  function spec(): SandboxSpec {
    const lifetimeMs = options.remainingMs() + LIFETIME_SLACK_MS
    return { interactionId, epoch, lifetimeMs, limits: options.limits }
  }

  async function provision(inputFiles: readonly StoredFile[], preloaded: boolean): Promise<Sandbox> {
    opened = true
    mayExist = true
    if (state !== 'ready') await options.onProvision('started')
    const mounts = await options.mounts()
    let sandbox = await sandboxes.open({ ...spec(), mounts, preloaded }, signal)
    if (!sandbox.fresh && state !== 'ready') {
      // Its creation was interrupted, so files may be missing. No code ran in it.
      await sandbox.destroy()
      sandbox = await sandboxes.open({ ...spec(), mounts, preloaded }, signal)
    }
    if (sandbox.fresh && state === 'ready') {
      lost = true
      state = 'unfinished'
      await options.onProvision('started')
    }
    await options.connect(sandbox)
    if (sandbox.fresh) await putFiles(options, sandbox, inputFiles)
    await options.onProvision(state === 'ready' ? 'resumed' : 'ready')
    state = 'ready'
    current = sandbox
    return sandbox
  }

  /** Reopens the sandbox of an earlier worker for its outputs. Undefined if it is gone. */
  async function reopen(): Promise<Sandbox | undefined> {
    if (state !== 'ready' || lost) return undefined
    const sandbox = await sandboxes.open(spec(), AbortSignal.timeout(REOPEN_MS))
    if (!sandbox.fresh) return sandbox
    // The next worker must not mistake the empty sandbox for the lost one.
    await sandbox.destroy()
    return undefined
  }

  return {
    open(inputFiles, preloaded = false) {
      if (signal.aborted) return Promise.reject(signal.reason)
      opening ??= provision(inputFiles, preloaded).catch((error) => {
        opening = undefined
        throw error
      })
      return opening
    },
    forget(sandbox) {
      lost = true
      if (!current || (sandbox && sandbox !== current)) return
      current = undefined
      opening = undefined
    },
    openCompanion({ name, limits, ...shape }) {
      if (signal.aborted) return Promise.reject(signal.reason)
      mayExist = true
      return sandboxes.open({ ...spec(), ...shape, name, limits: { ...options.limits, ...limits } }, signal)
    },
    opened: () => opened,
    async collect(until) {
      if (!opening && options.outputsTaken) return undefined
      const sandbox = await Promise.race([opening ?? reopen(), aborted(until)]).catch(() => undefined)
      if (!sandbox && state === 'ready') lost = true
      const outputs = sandbox
        ? await collectOutputs({ ...options, limits: options.outputLimits }, sandbox, until)
        : { files: [], problems: [] }
      return lost ? { ...outputs, problems: [LOST, ...outputs.problems] } : outputs
    },
    async destroy() {
      if (!mayExist) return
      await sandboxes.destroy(interactionId)
      mayExist = false
    },
  }
}

async function putFiles(
  { blobs }: WorkspaceOptions,
  sandbox: Sandbox,
  inputFiles: readonly StoredFile[],
): Promise<void> {
  for (const file of inputFiles) {
    const bytes = await blobs.open(file.blob)
    if (!bytes) throw new SandboxError('unavailable', `The input file ${file.name} is missing from the file store.`)
    await sandbox.writeFile(file.name, bytes, 'write')
  }
}
