/**
 * The interaction's sandbox as the run sees it: made on first need, the caller's files put in before anything else runs,
 * its outputs taken out at the end, and gone when the run is over.
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

/** A sandbox ends itself so long after its run's deadline, whoever forgot it. */
const LIFETIME_SLACK_MS = 60_000
const TAKE_UP_MS = 10_000
const LOST = 'a sandbox of this run was lost, and the output files in it'

export interface WorkspaceOptions {
  readonly sandboxes: Sandboxes
  readonly blobs: Blobs
  readonly interactionId: string
  readonly epoch: number
  readonly limits: SandboxLimits
  /** What the main sandbox shows of this machine. */
  readonly mounts: () => Promise<readonly Mount[]>
  readonly outputLimits: OutputsOptions['limits']
  readonly remainingMs: () => number
  readonly signal: AbortSignal
  /** What an earlier worker left. */
  readonly inherited: RestoredSandboxState
  /** Called with the main sandbox before anything runs in it: made now, or taken up. */
  readonly connect: (sandbox: Sandbox) => Promise<void>
  /** An earlier worker took the outputs, and they are stored. */
  readonly outputsTaken: boolean
  /** Awaited when a sandbox is being made and when it is ready, or where an earlier worker's is. Then code runs in it. */
  readonly onProvision: (state: 'started' | 'ready' | 'resumed') => Promise<void>
}

export interface Workspace {
  /** With these files in it where it is made now, and `preloaded` if it can be. Throws SandboxError. */
  open(inputFiles: readonly StoredFile[], preloaded?: boolean): Promise<Sandbox>
  forget(): void
  /** One beside it, by its name: made now, or the one that still lives. Throws SandboxError. */
  openCompanion(companion: Companion): Promise<Sandbox>
  /** Whether a sandbox was ever opened. */
  opened(): boolean
  /**
   * Takes everything under outputs/ into the blob store, until `signal` aborts. Never throws for what the sandbox holds.
   * Undefined where an earlier worker did.
   */
  collect(signal: AbortSignal): Promise<Outputs | undefined>
  /** Resolves when the sandbox is gone. */
  destroy(): Promise<void>
}

export function createWorkspace(options: WorkspaceOptions): Workspace {
  const { sandboxes, interactionId, epoch, signal } = options
  let opening: Promise<Sandbox> | undefined
  let opened = options.inherited !== 'none'
  // An earlier worker may have left some beside the main one, which the log does not tell.
  let mayStand = opened || epoch > 1
  let state = options.inherited
  let lost = false

  function spec(): SandboxSpec {
    const lifetimeMs = options.remainingMs() + LIFETIME_SLACK_MS
    return { interactionId, epoch, lifetimeMs, limits: options.limits }
  }

  async function provision(inputFiles: readonly StoredFile[], preloaded: boolean): Promise<Sandbox> {
    opened = true
    mayStand = true
    if (state !== 'ready') await options.onProvision('started')
    const mounts = await options.mounts()
    let sandbox = await sandboxes.open({ ...spec(), mounts, preloaded }, signal)
    if (!sandbox.fresh && state !== 'ready') {
      // Files may be missing in one whose making was interrupted; nothing ran in it.
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
    return sandbox
  }

  /** The sandbox of an earlier worker, for its outputs; undefined where there is none any more. */
  async function takeUp(): Promise<Sandbox | undefined> {
    if (state !== 'ready' || lost) return undefined
    const sandbox = await sandboxes.open(spec(), AbortSignal.timeout(TAKE_UP_MS))
    if (!sandbox.fresh) return sandbox
    // Whoever goes on must not take the empty one for the one that is gone.
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
    forget() {
      opening = undefined
      lost = true
    },
    openCompanion({ name, limits, ...shape }) {
      if (signal.aborted) return Promise.reject(signal.reason)
      mayStand = true
      return sandboxes.open({ ...spec(), ...shape, name, limits: { ...options.limits, ...limits } }, signal)
    },
    opened: () => opened,
    async collect(until) {
      if (!opening && options.outputsTaken) return undefined
      const sandbox = await Promise.race([opening ?? takeUp(), aborted(until)]).catch(() => undefined)
      if (!sandbox && state === 'ready') lost = true
      const outputs = sandbox
        ? await collectOutputs({ ...options, limits: options.outputLimits }, sandbox, until)
        : { files: [], problems: [] }
      return lost ? { ...outputs, problems: [LOST, ...outputs.problems] } : outputs
    },
    async destroy() {
      if (!mayStand) return
      await sandboxes.destroy(interactionId)
      mayStand = false
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
