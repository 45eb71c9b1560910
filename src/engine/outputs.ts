/**
 * The output files of a run: everything under outputs/, streamed from the sandbox into the blob store. What is left behind
 * is told, and why; a file that changes while it is read is stored as it was read.
 */
import type { Blobs } from '../blobs/port.ts'
import type { StoredFile } from '../domain/interaction.ts'
import { type Entry, type Sandbox, SandboxError } from '../sandbox/port.ts'
import { storeFile } from './store-file.ts'

const OUTPUTS = 'outputs'
const MAX_OUTPUT_FILES = 1_000
/** Files, directories and all else under outputs/ that are looked at. */
const MAX_OUTPUT_ENTRIES = 20_000
const LATE = 'the time for taking output files ran out, and what is not listed was left behind'

export interface Outputs {
  readonly files: readonly StoredFile[]
  /** What was left behind, in words. */
  readonly problems: readonly string[]
}

export interface OutputsOptions {
  readonly blobs: Blobs
  readonly interactionId: string
  /** Of all files together. */
  readonly maxOutputBytes: number
}

/** What is stored when `signal` aborts is what there is. Throws only what the blob store throws. */
export async function collectOutputs(options: OutputsOptions, sandbox: Sandbox, signal: AbortSignal): Promise<Outputs> {
  const files: StoredFile[] = []
  const problems: string[] = []
  const taking = takeOutputs(options, sandbox, signal, files, problems)
  taking.catch(() => {}) // when it is late, nobody waits for it
  await Promise.race([taking, aborted(signal)])
  return signal.aborted ? { files: [...files], problems: [...problems, LATE] } : { files, problems }
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  signal.addEventListener('abort', () => resolve(undefined), { once: true })
  if (signal.aborted) resolve(undefined)
  return promise
}

async function takeOutputs(
  { blobs, interactionId, maxOutputBytes }: OutputsOptions,
  sandbox: Sandbox,
  signal: AbortSignal,
  files: StoredFile[],
  problems: string[],
): Promise<void> {
  let room = maxOutputBytes
  for (const entry of await listOutputs(sandbox, problems)) {
    if (entry.size > room) {
      problems.push(
        `${entry.path} (${entry.size} bytes) is over what output files may hold together, ${maxOutputBytes} bytes`,
      )
      continue
    }
    try {
      const bytes = until(signal, sandbox.openFile(`${OUTPUTS}/${entry.path}`, room))
      const file = await storeFile(blobs, `${interactionId}/out/${files.length}`, entry.path, bytes)
      if (signal.aborted) return
      files.push(file)
      room -= file.size
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      problems.push(`${entry.path}: ${error.message}`)
    }
  }
}

async function* until(signal: AbortSignal, bytes: AsyncIterable<Uint8Array>) {
  for await (const chunk of bytes) {
    signal.throwIfAborted()
    yield chunk
  }
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
