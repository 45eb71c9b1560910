/** Parser for server-sent events (WHATWG HTML, section 9.2.6). */

export interface SseMessage {
  readonly id: string
  readonly event: string
  readonly data: string
}

/**
 * Yields the messages of a stream until it ends. Drops an unfinished message at the end, as the standard requires. Throws
 * `idle()` if nothing arrives for `idleMs`, not even a comment. Cancels the body when the caller stops reading.
 */
export async function* readSse(
  body: ReadableStream<Uint8Array>,
  idleMs: number,
  idle: () => Error,
): AsyncGenerator<SseMessage> {
  let id = ''
  let event = ''
  let data: string[] = []
  for await (const line of readLines(body, idleMs, idle)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') }
      event = ''
      data = []
      continue
    }
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'id') id = value
    else if (field === 'event') event = value
    else if (field === 'data') data.push(value)
  }
}

async function* readLines(body: ReadableStream<Uint8Array>, idleMs: number, idle: () => Error): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), idleMs, idle)
      if (done) return
      const parts = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/)
      rest = parts.pop()!
      yield* parts
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

async function withTimeout<T>(promise: Promise<T>, ms: number, error: () => Error): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(error()), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
