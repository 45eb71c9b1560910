/** Reads server-sent events strictly, like the standard's parser. */

export interface WireEvent {
  readonly id: string | undefined
  readonly event: string
  /** The parsed JSON of the `data:` line. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field; assertions check its type.
  readonly data: any
}

export async function* readSse(response: Response): AsyncGenerator<WireEvent> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let buffer = ''
  if (!response.body) return
  for await (const chunk of response.body) {
    buffer += decoder.decode(chunk, { stream: true })
    for (;;) {
      const end = buffer.indexOf('\n\n')
      if (end < 0) break
      const event = parseBlock(buffer.slice(0, end))
      buffer = buffer.slice(end + 2)
      if (event) yield event
    }
  }
}

function parseBlock(block: string): WireEvent | undefined {
  let id: string | undefined
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    if (line.startsWith(':')) continue
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'id') id = value
    else if (field === 'event') event = value
    else if (field === 'data') data.push(value)
  }
  return data.length === 0 ? undefined : { id, event, data: JSON.parse(data.join('\n')) }
}
