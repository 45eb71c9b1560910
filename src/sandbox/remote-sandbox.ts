/** A sandbox for the engine: implements the port by requests to the host over one connection. */
import type { Connection } from './connection.ts'
import { resultPath } from './inside.ts'
import { type Entry, type ExecResult, type Listing, type Sandbox, SandboxError } from './port.ts'
import { type Address, CHUNK_BYTES, CHUNK_WINDOW, MAX_CODE_BYTES, UNSET_LIMITS } from './protocol.ts'
import { listJobs, requestJob } from './remote-jobs.ts'
import { listen, spawn } from './remote-streams.ts'

export function createRemoteSandbox(connection: Connection, address: Address, fresh: boolean): Sandbox {
  return {
    fresh,
    exec: (request, onOutput, signal) => exec(connection, address, request, onOutput, signal),
    job: (request, signal) => requestJob(connection, address, request, signal),
    jobs: () => listJobs(connection, address),
    writeFile: (path, bytes, mode) => writeFile(connection, address, path, bytes, mode),
    readFile: (path, maxBytes) => readFile(connection, address, path, maxBytes),
    openFile: (path, maxBytes) => openFile(connection, address, path, maxBytes),
    list: (path, options) => list(connection, address, path, options),
    async setEnvironment(variables) {
      await connection.start({ op: 'env', ...address, variables }).done
    },
    spawn: (request, onStderr) => spawn(connection, address, request, onStderr),
    listen: (port, onConnection) => listen(connection, address, port, onConnection),
    async destroy() {
      try {
        await connection.start({ op: 'destroy', ...address }).done
      } catch (error) {
        // The host is gone, and the sandbox with it.
        if (!(error instanceof SandboxError && error.code === 'lost')) throw error
      }
    },
  }
}

type Exec = Sandbox['exec']

async function exec(
  connection: Connection,
  address: Address,
  { key, language, code, timeoutMs }: Parameters<Exec>[0],
  onOutput: Parameters<Exec>[1],
  signal: AbortSignal,
): Promise<ExecResult> {
  const started = Date.now()
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let output = ''
  const result = (end: ExecResult['end']): ExecResult => {
    return { output, end, truncated: false, durationMs: Date.now() - started, sessionRestarted: false }
  }
  if (signal.aborted) return result({ kind: 'cancelled' })
  const bytes = Buffer.from(code)
  if (bytes.length > MAX_CODE_BYTES) {
    output = `The code is larger than ${MAX_CODE_BYTES} bytes: put its data into a file.\n`
    return result({ kind: 'exit', code: 126 })
  }
  const request = { op: 'exec', ...address, key, language, timeoutMs, ...UNSET_LIMITS } as const
  const call = connection.start(request, bytes, (reply, payload) => {
    if (reply.op === 'live') onOutput(payload.toString('utf8'))
    if (reply.op !== 'out') return
    const text = decoder.decode(payload, { stream: true })
    output += text
    if (text && !reply.replayed && !reply.quiet) onOutput(text)
  })
  const kill = () => call.send({ op: 'kill' })
  signal.addEventListener('abort', kill)
  try {
    const { end, truncated = false, durationMs = 0, sessionRestarted = false, hits, saved: file } = await call.done
    output += decoder.decode()
    const saved = file && { path: resultPath(address.sandbox, key), ...file }
    return {
      output,
      truncated,
      end: end!,
      durationMs,
      sessionRestarted,
      ...(hits && { hits }),
      ...(saved && { saved }),
    }
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'lost') return result({ kind: 'lost' })
    throw error
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

async function writeFile(
  connection: Connection,
  address: Address,
  path: string,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  mode: 'write' | 'append',
): Promise<void> {
  let unacknowledged = 0
  let ended = false
  let onRoom = () => {}
  const call = connection.start({ op: 'write', ...address, path, mode }, undefined, (reply) => {
    if (reply.op !== 'ack') return
    unacknowledged--
    onRoom()
  })
  const room = () => {
    return new Promise<void>((resolve) => {
      onRoom = resolve
    })
  }

  async function pump(): Promise<void> {
    for await (const chunk of chunksOf(bytes)) {
      while (!ended && unacknowledged >= CHUNK_WINDOW) await room()
      if (ended) return
      unacknowledged++
      call.send({ op: 'chunk' }, chunk)
    }
    while (!ended && unacknowledged > 0) await room()
    call.send({ op: 'commit' })
  }

  const done = call.done.finally(() => {
    ended = true
    onRoom()
  })
  try {
    // Ends when all is sent, or when the host ends the request.
    await Promise.race([pump(), done])
  } catch (error) {
    call.send({ op: 'abort' })
    await done.catch(() => {})
    throw error
  }
  await done
}

async function* chunksOf(bytes: Uint8Array | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const part of bytes instanceof Uint8Array ? [bytes] : bytes) {
    for (let at = 0; at < part.byteLength; at += CHUNK_BYTES) yield part.subarray(at, at + CHUNK_BYTES)
  }
}

async function readFile(connection: Connection, address: Address, path: string, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const part of openFile(connection, address, path, maxBytes)) parts.push(part)
  return Buffer.concat(parts)
}

async function list(
  connection: Connection,
  address: Address,
  path: string,
  { recursive, maxEntries }: Parameters<Sandbox['list']>[1],
): Promise<Listing> {
  const pieces: Buffer[] = []
  const request = { op: 'list', ...address, path, recursive, maxEntries } as const
  const { more = false } = await connection.start(request, undefined, (reply, payload) => {
    if (reply.op === 'entries') pieces.push(payload)
  }).done
  return { entries: pieces.flatMap(toEntries), more }
}

/** Checks the entries, because the runner shares its sandbox with untrusted code. Throws SandboxError `lost`. */
function toEntries(piece: Buffer): Entry[] {
  try {
    const entries: unknown[] = JSON.parse(`[${piece}]`)
    if (entries.every(isEntry)) return entries
  } catch {}
  throw new SandboxError('lost', 'The sandbox sent an invalid list of files.')
}

function isEntry(value: unknown): value is Entry {
  const { path, type, size, problem = '' } = (value ?? {}) as Partial<Record<keyof Entry, unknown>>
  const named = typeof path === 'string' && path.isWellFormed() && typeof problem === 'string'
  return named && (type === 'file' || type === 'directory' || type === 'other') && Number.isSafeInteger(size)
}

/** Acknowledges a chunk when the caller takes it, so that at most one window is buffered here. */
async function* openFile(
  connection: Connection,
  address: Address,
  path: string,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  const waiting: Buffer[] = []
  let end: { readonly error?: unknown } | undefined
  let onNews = () => {}
  const call = connection.start({ op: 'read', ...address, path, maxBytes }, undefined, (reply, payload) => {
    if (reply.op !== 'chunk') return
    waiting.push(payload)
    onNews()
  })
  const finish = (how: NonNullable<typeof end>) => {
    end = how
    onNews()
  }
  call.done.then(
    () => finish({}),
    (error) => finish({ error }),
  )
  try {
    for (;;) {
      const chunk = waiting.shift()
      if (chunk) {
        call.send({ op: 'ack' })
        yield chunk
      } else if (end?.error) throw end.error
      else if (end) return
      else {
        await new Promise<void>((resolve) => {
          onNews = resolve
        })
      }
    }
  } finally {
    if (!end) call.send({ op: 'abort' })
  }
}
