/**
 * The interaction's sandbox as the run sees it: made on first need, the caller's files put in before anything else runs,
 * its outputs taken out at the end, and gone when the run is over.
 */
import { createHash } from 'node:crypto'
import mime from 'mime'
import type { Blobs } from '../blobs/port.ts'
import type { StoredFile } from '../domain/interaction.ts'
import {
  type Entry,
  type Sandbox,
  SandboxError,
  type Sandboxes,
  type SandboxLimits,
  type SandboxSpec,
} from '../sandbox/port.ts'
import type { Companion } from '../tools/port.ts'
import type { Inheritance } from './restore.ts'

const OUTPUTS = 'outputs'
const MAX_OUTPUT_FILES = 1_000
/** Files, directories and all else under outputs/ that are looked at. */
const MAX_OUTPUT_ENTRIES = 20_000
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
  readonly maxOutputBytes: number
  readonly remainingMs: () => number
  readonly signal: AbortSignal
  /** What an earlier worker left. */
  readonly inherited: Inheritance
  /** Called when a sandbox is about to be made, and when it is ready. */
  readonly onProvision: (state: 'started' | 'ready') => void
}

export interface Outputs {
  readonly files: readonly StoredFile[]
  /** What was left behind, in words. */
  readonly problems: readonly string[]
}

export interface Workspace {
  /** With these files in it where it is made now. Throws SandboxError. */
  open(inputFiles: readonly StoredFile[]): Promise<Sandbox>
  forget(): void
  /** One beside it, by its name: made now, or the one that still lives. Throws SandboxError. */
  openCompanion(companion: Companion): Promise<Sandbox>
  /** Whether a sandbox was ever opened. */
  readonly opened: boolean
  /** Takes everything under outputs/ into the blob store. Never throws for what the sandbox holds. */
  collect(): Promise<Outputs>
  /** Resolves when the sandbox is gone. */
  destroy(): Promise<void>
}

export function createWorkspace(options: WorkspaceOptions): Workspace {
  const { sandboxes, interactionId, epoch, signal } = options
  let opening: Promise<Sandbox> | undefined
  let opened = options.inherited !== 'none'
  // An earlier worker may have left some beside the main one, which the log does not tell.
  let mayStand = opened || epoch > 1
  let { inherited } = options
  let lost = false

  function spec(): SandboxSpec {
    const lifetimeMs = options.remainingMs() + LIFETIME_SLACK_MS
    return { interactionId, epoch, lifetimeMs, limits: options.limits }
  }

  async function provision(inputFiles: readonly StoredFile[]): Promise<Sandbox> {
    opened = true
    mayStand = true
    options.onProvision('started')
    // Files may be missing in one whose making was interrupted; nothing ran in it.
    if (inherited === 'unfinished') await sandboxes.destroy(interactionId)
    const sandbox = await sandboxes.open(spec(), signal)
    if (inherited === 'ready' && sandbox.fresh) lost = true
    inherited = 'none'
    if (sandbox.fresh) await putFiles(options, sandbox, inputFiles)
    options.onProvision('ready')
    return sandbox
  }

  /** The sandbox of an earlier worker, for its outputs; undefined where there is none any more. */
  async function takeUp(): Promise<Sandbox | undefined> {
    if (inherited !== 'ready') return undefined
    const sandbox = await sandboxes.open(spec(), AbortSignal.timeout(TAKE_UP_MS))
    return sandbox.fresh ? undefined : sandbox
  }

  return {
    open(inputFiles) {
      if (signal.aborted) return Promise.reject(signal.reason)
      opening ??= provision(inputFiles).catch((error) => {
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
    get opened() {
      return opened
    },
    async collect() {
      const sandbox = await (opening ?? takeUp()).catch(() => undefined)
      if (!sandbox && inherited === 'ready') lost = true
      const outputs = sandbox ? await collectOutputs(options, sandbox) : { files: [], problems: [] }
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

async function collectOutputs(options: WorkspaceOptions, sandbox: Sandbox): Promise<Outputs> {
  const files: StoredFile[] = []
  const problems: string[] = []
  let room = options.maxOutputBytes
  for (const entry of await listOutputs(sandbox, problems)) {
    if (entry.size > room) {
      problems.push(
        `${entry.path} (${entry.size} bytes) is over what output files may hold together, ${options.maxOutputBytes} bytes`,
      )
      continue
    }
    try {
      const bytes = await sandbox.readFile(`${OUTPUTS}/${entry.path}`, room)
      room -= bytes.length
      files.push(await storeFile(options.blobs, `${options.interactionId}/out/${files.length}`, entry.path, bytes))
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      problems.push(`${entry.path}: ${error.message}`)
    }
  }
  return { files, problems }
}

async function listOutputs(sandbox: Sandbox, problems: string[]): Promise<Entry[]> {
  try {
    const found = await sandbox.list(OUTPUTS, { recursive: true, maxEntries: MAX_OUTPUT_ENTRIES + 1 })
    const entries = found.slice(0, MAX_OUTPUT_ENTRIES)
    if (found.length > entries.length)
      problems.push(`only the first ${MAX_OUTPUT_ENTRIES} entries of outputs/ were looked at`)
    for (const { path, type, problem } of entries) {
      if (problem !== undefined) problems.push(`${path}: ${problem}`)
      else if (type === 'other') problems.push(`${path} is no regular file`)
    }
    const files = entries.filter((entry) => entry.type === 'file')
    if (files.length > MAX_OUTPUT_FILES) problems.push(`only the first ${MAX_OUTPUT_FILES} files were taken`)
    return files.slice(0, MAX_OUTPUT_FILES)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    // No outputs directory is no outputs; a sandbox that is gone took them with it.
    if (error.code !== 'not_found') problems.push(error.message)
    return []
  }
}

/** Puts bytes into the blob store, streamed where they come so, and says what they are. `mimeType`: the caller's word, else by the name's ending. */
export async function storeFile(
  blobs: Blobs,
  blob: string,
  name: string,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  mimeType?: string,
): Promise<StoredFile> {
  const hash = createHash('sha256')
  let size = 0
  const count = (chunk: Uint8Array) => {
    hash.update(chunk)
    size += chunk.byteLength
    return chunk
  }
  await blobs.put(blob, bytes instanceof Uint8Array ? count(bytes) : counted(bytes, count))
  return {
    name,
    blob,
    size,
    mimeType: mimeType ?? mime.getType(name) ?? 'application/octet-stream',
    sha256: hash.digest('hex'),
  }
}

async function* counted(bytes: AsyncIterable<Uint8Array>, count: (chunk: Uint8Array) => Uint8Array) {
  for await (const chunk of bytes) yield count(chunk)
}
