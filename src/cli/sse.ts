/** Reading a server-sent event stream (WHATWG HTML, 9.2.6), as far as this service writes it. */

export interface SseMessage {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** The messages of a stream, until it ends or breaks. An unfinished message at the end is dropped, as the standard says. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseMessage> {
  let id = ''
  let event = ''
  let data: string[] = []
  for await (const line of lines(body)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') }
      event = ''
      data = []
      continue
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!
    if (field === 'id') id = value
    else if (field === 'event') event = value
    else if (field === 'data') data.push(value)
  }
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop()!
    for (const part of parts) yield part.endsWith('\r') ? part.slice(0, -1) : part
  }
}
