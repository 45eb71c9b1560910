/**
 * The output files of a run: everything in outputs/, streamed from the sandbox into the blob store. Each skipped file is
 * reported with the reason. A file that changes during the read is stored as it was read.
 */
import type { Blobs } from '../../blobs/port.ts'
import type { StoredFile } from '../../domain/interaction.ts'
import type { Limits } from '../../domain/limits.ts'
import { type Entry, type Sandbox, SandboxError } from '../../sandbox/port.ts'
import { storeFile } from './store-file.ts'

const OUTPUTS = 'outputs'
/** Maximum length of a file name. The percent-encoded name must fit into a signed URL, and a request line into 16 KiB. */
const MAX_NAME_BYTES = 1024
/** Maximum number of entries in outputs/ that are listed. */
const MAX_OUTPUT_ENTRIES = 20_000
/** Characters of an overlong name that its warning shows. */
const SHOWN_NAME = 100
const LATE = 'the time for storing output files ran out; files that are not listed were skipped'

export interface Outputs {
  readonly files: readonly StoredFile[]
  /** Why files were skipped. */
  readonly problems: readonly string[]
}

export interface OutputsOptions {
  readonly blobs: Blobs
  readonly interactionId: string
  readonly limits: Pick<Limits, 'outputFilesBytes' | 'outputFiles' | 'outputNamesBytes'>
}

/** Stores output files until `signal` aborts. Throws only errors of the blob store. */
export async function collectOutputs(options: OutputsOptions, sandbox: Sandbox, signal: AbortSignal): Promise<Outputs> {
  const files: StoredFile[] = []
  const problems: string[] = []
  const taking = takeOutputs(options, sandbox, signal, files, problems)
  taking.catch(() => {}) // after a timeout nothing waits for it
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
  { blobs, interactionId, limits }: OutputsOptions,
  sandbox: Sandbox,
  signal: AbortSignal,
  files: StoredFile[],
  problems: string[],
): Promise<void> {
  let room = limits.outputFilesBytes
  for (const entry of withinLimits(await listOutputs(sandbox, problems), limits, problems)) {
    if (entry.size > room) {
      problems.push(
        `${entry.path} (${entry.size} bytes) is over what output files may hold together, ${limits.outputFilesBytes} bytes`,
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

/** The first entries within the limits on number and names. Adds a problem for skipped entries. */
function withinLimits(
  entries: readonly Entry[],
  { outputFiles, outputNamesBytes }: OutputsOptions['limits'],
  problems: string[],
): Entry[] {
  let bytes = 0
  const taken: Entry[] = []
  for (const entry of entries) {
    const nameBytes = Buffer.byteLength(entry.path)
    if (nameBytes > MAX_NAME_BYTES) {
      problems.push(
        `${entry.path.slice(0, SHOWN_NAME)}… has a name of ${nameBytes} bytes, and ${MAX_NAME_BYTES} is the most`,
      )
      continue
    }
    bytes += nameBytes
    if (taken.length === outputFiles || bytes > outputNamesBytes) {
      const limit = taken.length === outputFiles ? `${outputFiles} files` : `${outputNamesBytes} bytes of names`
      problems.push(
        `only the first ${taken.length} files were taken, since ${limit} is the most; ${entry.path} is the first that was not`,
      )
      break
    }
    taken.push(entry)
  }
  return taken
}

async function* until(signal: AbortSignal, bytes: AsyncIterable<Uint8Array>) {
  for await (const chunk of bytes) {
    signal.throwIfAborted()
    yield chunk
  }
}

async function listOutputs(sandbox: Sandbox, problems: string[]): Promise<Entry[]> {
  try {
    const { entries, more } = await sandbox.list(OUTPUTS, { recursive: true, maxEntries: MAX_OUTPUT_ENTRIES })
    if (more) problems.push(`outputs/ holds more than can be listed: only ${entries.length} entries were looked at`)
    for (const { path, type, problem } of entries) {
      const name = path.length > MAX_NAME_BYTES ? `${path.slice(0, SHOWN_NAME)}…` : path
      if (problem !== undefined) problems.push(`${name}: ${problem}`)
      else if (type === 'other') problems.push(`${name} is no regular file`)
    }
    return entries.filter(({ type }) => type === 'file')
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    // A missing outputs directory means no outputs. A lost sandbox is a problem: its outputs are lost too.
    if (error.code !== 'not_found') problems.push(error.message)
    return []
  }
}
