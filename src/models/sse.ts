/**
 * Parser for server-sent events: bytes → `data` payloads. Lines are split as bytes and then decoded, so chunks may end
 * inside a character, a line or a CRLF. Comments and fields other than `data` are ignored. Several `data` lines of one
 * event are joined by newlines, as in the standard. A lone CR does not end a line: no provider sends it, and looking for
 * it would double the work.
 */

export interface SseParser {
  /** Returns false if a line or an event exceeds the limit. The parser must not be used after that. */
  push(chunk: Buffer): boolean
  /** Ends the stream. Emits the last event even without its empty line, which some servers omit. */
  end(): boolean
}

const LF = 10
const CR = 13
const COLON = 58
const SPACE = 32

/** `onData` is called once per event, in order. `maxBytes` limits a line and the data of an event. */
export function createSseParser(onData: (data: string) => void, maxBytes: number): SseParser {
  /** Start of a line that is not complete yet. */
  let held: Buffer[] = []
  let heldBytes = 0
  let data: string | undefined
  let atStart = true

  function line(bytes: Buffer, from: number, to: number): void {
    let begin = from
    const end = to > from && bytes[to - 1] === CR ? to - 1 : to
    if (atStart) {
      atStart = false
      if (bytes[begin] === 0xef && bytes[begin + 1] === 0xbb && bytes[begin + 2] === 0xbf) begin += 3
    }
    if (end <= begin) dispatch()
    else if (isData(bytes, begin, end)) take(bytes, begin, end)
  }

  function take(bytes: Buffer, begin: number, end: number): void {
    let valueAt = Math.min(begin + 5, end)
    if (valueAt < end && bytes[valueAt] === SPACE) valueAt++
    const value = bytes.toString('utf8', valueAt, end)
    data = data === undefined ? value : `${data}\n${value}`
  }

  function dispatch(): void {
    if (data === undefined) return
    const whole = data
    data = undefined
    onData(whole)
  }

  function push(chunk: Buffer): boolean {
    let start = 0
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, start)) {
      if (heldBytes === 0) line(chunk, start, at)
      else {
        held.push(chunk.subarray(0, at))
        const whole = Buffer.concat(held)
        held = []
        heldBytes = 0
        line(whole, 0, whole.length)
      }
      start = at + 1
      if (data !== undefined && data.length > maxBytes) return false
    }
    if (start < chunk.length) {
      held.push(start === 0 ? chunk : chunk.subarray(start))
      heldBytes += chunk.length - start
    }
    return heldBytes <= maxBytes
  }

  return {
    push,
    end: () => push(Buffer.from('\n\n')),
  }
}

/** Whether the line's field is exactly `data`. */
function isData(bytes: Buffer, begin: number, end: number): boolean {
  return (
    end - begin >= 4 &&
    bytes[begin] === 0x64 &&
    bytes[begin + 1] === 0x61 &&
    bytes[begin + 2] === 0x74 &&
    bytes[begin + 3] === 0x61 &&
    (end - begin === 4 || bytes[begin + 4] === COLON)
  )
}
