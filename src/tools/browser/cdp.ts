/**
 * A client for Chromium's DevTools protocol over a pipe: JSON messages, each ended by a NUL byte. The other end may be a
 * browser that a page has taken over. So every answer is checked for the fields that are used, every message has a maximum
 * size, and a malformed message fails only the call that it answers.
 *
 * Why not a library: playwright-core 1.65 (Apache-2.0, no dependencies) can use a pipe, by `connectOverCDP(transport)`. But
 * loading it takes 0.7 s and 69 MB of memory, and of ten malformed messages three became unhandled rejections, which would
 * end the server. It would replace this file only. puppeteer-core has the same flaw: its event handlers are async.
 */
import type { Duplex } from 'node:stream'
import { z } from 'zod'

/** Large enough for a screenshot in base64, which is the largest answer. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
const ANSWER_TIMEOUT_MS = 20_000
/** The part of an oversized message that is kept: enough to find the call that it answers. */
const HEAD_BYTES = 64

export type Parameters = Readonly<Record<string, unknown>>

export interface ProtocolEvent {
  readonly method: string
  readonly params: unknown
  /** Undefined for events of the browser itself. */
  readonly session: string | undefined
}

export interface CallOptions<T> {
  readonly session?: string | undefined
  readonly params?: Parameters
  /** Checks the answer. Fields that it does not name are dropped. */
  readonly answer?: z.ZodType<T>
  readonly timeoutMs?: number
}

export interface Cdp {
  /** Rejects with CdpError. */
  call<T = unknown>(method: string, options?: CallOptions<T>): Promise<T>
  /** Closes the connection, rejects every open call, and stops events. Idempotent. */
  close(): void
}

/** `refused`: the browser answered with an error, in `message`. The other codes are about the connection. */
type CdpErrorCode = 'refused' | 'timeout' | 'malformed' | 'closed'

export class CdpError extends Error {
  readonly code: CdpErrorCode
  constructor(code: CdpErrorCode, message: string) {
    super(message)
    this.name = 'CdpError'
    this.code = code
  }
}

const MESSAGE = z.object({
  id: z.int().optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
  sessionId: z.string().optional(),
})

interface PendingCall {
  readonly settle: (result: unknown, error?: CdpError) => void
}

export function createCdp(stream: Duplex, onEvent: (event: ProtocolEvent) => void): Cdp {
  const pending = new Map<number, PendingCall>()
  let lastId = 0
  let closed = false

  function settle(id: number, result: unknown, error?: CdpError): void {
    const found = pending.get(id)
    pending.delete(id)
    found?.settle(result, error)
  }

  function receive(text: string): void {
    const parsed = parse(text)
    if (parsed?.id !== undefined) {
      settle(parsed.id, parsed.result, parsed.error && new CdpError('refused', parsed.error.message.slice(0, 500)))
    } else if (parsed?.method !== undefined) {
      onEvent({ method: parsed.method, params: parsed.params, session: parsed.sessionId })
    }
  }

  function rejectOversized(head: string): void {
    const id = /^\{"id":(\d+)/.exec(head)?.[1]
    if (id !== undefined) settle(Number(id), undefined, new CdpError('malformed', 'The answer was too large.'))
  }

  function close(): void {
    if (closed) return
    closed = true
    stream.destroy()
    for (const id of [...pending.keys()]) settle(id, undefined, new CdpError('closed', 'The browser has ended.'))
  }

  const read = createReader(receive, rejectOversized)
  stream.on('data', (bytes: Buffer) => !closed && read(bytes))
  stream.on('error', close)
  stream.on('close', close)
  stream.on('end', close)

  return {
    close,
    call(method, { session, params = {}, answer, timeoutMs = ANSWER_TIMEOUT_MS } = {}) {
      if (closed) return Promise.reject(new CdpError('closed', 'The browser has ended.'))
      const id = ++lastId
      return new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => settle(id, undefined, new CdpError('timeout', `No answer to ${method} in ${timeoutMs / 1000} s.`)),
          timeoutMs,
        )
        pending.set(id, {
          settle(result, error) {
            clearTimeout(timer)
            if (error) return reject(error)
            const checked = answer?.safeParse(result)
            if (checked?.success === false)
              reject(new CdpError('malformed', `The browser’s answer to ${method} was malformed.`))
            else resolve((checked?.data ?? result) as never)
          },
        })
        stream.write(
          `${JSON.stringify({ id, method, params, ...(session !== undefined && { sessionId: session }) })}\0`,
        )
      })
    },
  }
}

function parse(text: string): z.output<typeof MESSAGE> | undefined {
  try {
    return MESSAGE.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** Splits the bytes at NULs. Only the head of a message above the maximum size is kept. */
function createReader(onMessage: (text: string) => void, onOversized: (head: string) => void) {
  let parts: Buffer[] = []
  let size = 0

  function add(part: Buffer): void {
    size += part.length
    parts.push(part)
    if (size > MAX_MESSAGE_BYTES) parts = [Buffer.from(Buffer.concat(parts).subarray(0, HEAD_BYTES))]
  }

  function finish(): void {
    const bytes = Buffer.concat(parts)
    const whole = size <= MAX_MESSAGE_BYTES
    parts = []
    size = 0
    if (whole) onMessage(bytes.toString('utf8'))
    else onOversized(bytes.toString('latin1'))
  }

  return (bytes: Buffer) => {
    let from = 0
    for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, from)) {
      add(bytes.subarray(from, end))
      finish()
      from = end + 1
    }
    add(bytes.subarray(from))
  }
}
