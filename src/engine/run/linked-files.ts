/**
 * Input files by URL: streams them through the egress guard into the blob store before the first model call, a few at a time.
 * For a file in a bucket, the operator's credentials first sign an https URL, which is never shown. Each connection is in the
 * audit log before it is dialed.
 */
import { isBucketAddress, type SignedAddress } from '../../buckets/port.ts'
import { ErrandError } from '../../domain/errors.ts'
import type { LinkedFile, RunRequest, RunSpec, StoredFile } from '../../domain/interaction.ts'
import { EgressError, type Fetched } from '../../egress/port.ts'
import { fetchedFilesStatement } from '../../store/fetched-files.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Run } from './run.ts'
import { storeFile } from './store-file.ts'

const AT_ONCE = 4
const MIB = 1024 * 1024

type Linked = NonNullable<RunSpec['linkedFiles']>[number]

/** Throws ErrandError `invalid_request` for a URL that the egress guard always refuses. */
export function refuseAddresses(deps: EngineDependencies, projectId: string, files: RunRequest['files']): void {
  for (const [i, file] of files.entries()) {
    const fault = 'url' in file && faultOf(deps, projectId, file.url)
    if (!fault) continue
    const param = `files[${i}].url`
    throw new ErrandError('invalid_request', `\`${param}\` ${fault}.`, { param })
  }
}

function faultOf({ egress, buckets }: EngineDependencies, projectId: string, url: string): string | undefined {
  return isBucketAddress(url) ? buckets.faultOf(url, projectId) : egress.faultOf(url)
}

/**
 * Returns the spec with every file in the blob store and no URLs. The stored spec follows with the next append. Throws
 * ErrandError `file_unavailable`, or the signal's reason.
 */
export async function fetchLinkedFiles(deps: EngineDependencies, run: Run): Promise<RunSpec> {
  const { claim, spec, past, recorder } = run
  const { linkedFiles, ...rest } = spec
  if (!linkedFiles || linkedFiles.length === 0) return spec
  if (past.restored.stage !== 'provisioning') recorder.append({ type: 'stage', stage: 'provisioning' })
  const fetched = await fetchAll(deps, run, linkedFiles)
  const ready: RunSpec = { ...rest, inputFiles: [...spec.inputFiles, ...fetched] }
  recorder.append({ type: 'stage', stage: 'working' })
  recorder.attach(() => fetchedFilesStatement(deps.db, claim.id, ready))
  return ready
}

/** Returns the files in the order of the request. The first failure stops the others. */
async function fetchAll(deps: EngineDependencies, run: Run, files: readonly Linked[]): Promise<StoredFile[]> {
  const stored: StoredFile[] = []
  const failed = new AbortController()
  const either = AbortSignal.any([run.signal, failed.signal])
  // Files beyond the workspace's capacity would be useless.
  const room = { bytes: run.spec.policy.sandbox.workspaceMiB * MIB }
  const waiting = files.entries()

  async function fetchNext(): Promise<void> {
    for (const [i, file] of waiting) {
      try {
        stored[i] = await fetchOne(deps, run, file, room, either)
      } catch (error) {
        failed.abort(error)
        throw error
      }
    }
  }

  await Promise.allSettled(Array.from({ length: AT_ONCE }, fetchNext))
  either.throwIfAborted()
  return stored
}

async function fetchOne(
  deps: EngineDependencies,
  run: Run,
  file: Linked,
  room: { bytes: number },
  signal: AbortSignal,
): Promise<StoredFile> {
  const { blobs, egress, limits, fileTypes } = deps
  let answer: Fetched | undefined
  try {
    const { url, trusted } = await addressOf(deps, run, file)
    answer = await egress.fetch(url, {
      signal,
      trusted,
      maxBytes: limits.fileBytes,
      timeoutMs: limits.fileFetchS * 1_000,
      onConnect: run.auditor.audit('file'),
    })
    if (answer.status !== 200) throw unavailable(file, `The answer was ${answer.status} instead of 200.`)
    refuseType(fileTypes, file, answer)
    return await storeFile(blobs, file.blob, file.name, within(room, file, answer.body), file.mimeType)
  } catch (error) {
    throw error instanceof EgressError ? unavailable(file, error.message) : error
  } finally {
    answer?.close()
  }
}

function refuseType(allowed: readonly string[], file: Linked, { headers }: Fetched): void {
  if (allowed.length === 0) return
  const type = String(headers['content-type'] ?? 'application/octet-stream')
    .split(';', 1)[0]!
    .trim()
    .toLowerCase()
  const fits = (pattern: string) =>
    pattern === type || (pattern.endsWith('/*') && type.startsWith(pattern.slice(0, -1)))
  if (allowed.some((pattern) => fits(pattern.toLowerCase()))) return
  throw unavailable(file, `It comes as ${JSON.stringify(type.slice(0, 80))}; this server takes ${allowed.join(', ')}.`)
}

/** The address to fetch. Checked again: the configuration may have changed since the run was accepted. */
async function addressOf(deps: EngineDependencies, run: Run, file: Linked): Promise<SignedAddress> {
  const { url } = file
  if (!isBucketAddress(url)) return { url, trusted: false }
  const fault = deps.buckets.faultOf(url, run.claim.projectId)
  if (fault) throw unavailable(file, `Its address ${fault}.`)
  try {
    return await deps.buckets.sign(url)
  } catch (error) {
    deps.log.error({ err: error, interactionId: run.claim.id }, 'the address of a file in a bucket could not be signed')
    throw unavailable(file, 'The server’s credentials for it can’t be used.')
  }
}

/** The body, counted against the space that all files share. */
async function* within(room: { bytes: number }, file: LinkedFile, body: AsyncIterable<Uint8Array>) {
  for await (const chunk of body) {
    room.bytes -= chunk.byteLength
    if (room.bytes < 0) throw unavailable(file, 'With the files before it, it is more than the workspace holds.')
    yield chunk
  }
}

function unavailable(file: LinkedFile, why: string): ErrandError {
  return new ErrandError('file_unavailable', `The input file ${JSON.stringify(file.name)} could not be fetched. ${why}`)
}
