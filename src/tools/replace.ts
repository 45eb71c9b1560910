/**
 * One exact place of a file, replaced. The file is taken as bytes, and the texts as its encoding writes them, so that
 * every byte around the place stays as it is, whatever the file is.
 */

import { isUtf8 } from 'node:buffer'

export type Replacement =
  | { readonly ok: true; readonly bytes: Buffer; readonly line: number; readonly note: string }
  /** `why`: for the model, what is there and what to do. */
  | { readonly ok: false; readonly why: string }

export function replaceOnce(file: Buffer, find: string, content: string): Replacement {
  const { name, width, encode } = encodingOf(file)
  const asWritten = place(file, find, content, encode, width)
  // Models write \n whatever the file has. A text with \r\n in it means what it says.
  const windows = (text: string) => text.replaceAll('\n', '\r\n')
  const crlf =
    asWritten.times === 0 && find.includes('\n') && !find.includes('\r')
      ? place(file, windows(find), windows(content), encode, width)
      : asWritten
  const { times, at, old, fresh } = crlf.times > 0 ? crlf : asWritten
  if (!old || !fresh) return { ok: false, why: `the file is ${name}, which can't write every character given.` }
  if (times !== 1)
    return {
      ok: false,
      why: `\`find\` stands ${times} times in it, it must stand there exactly once. ${advice(times)}`,
    }
  const bytes = Buffer.concat([file.subarray(0, at), fresh, file.subarray(at + old.length)])
  const note = crlf.times === 1 && crlf !== asWritten ? ' The file has Windows line ends; they were kept.' : ''
  return { ok: true, bytes, line: 1 + count(file.subarray(0, at), encode('\n')!, width).times, note }
}

function advice(times: number): string {
  return times > 1
    ? 'Give more of the text around the place.'
    : 'Read the file and give the text as it stands there, spaces included.'
}

interface Encoding {
  readonly name: string
  /** Bytes of a unit: a place begins at a multiple of it. */
  readonly width: 1 | 2
  /** Undefined where it has no such character. */
  encode(text: string): Buffer | undefined
}

function encodingOf(file: Buffer): Encoding {
  if (file[0] === 0xff && file[1] === 0xfe)
    return { name: 'UTF-16', width: 2, encode: (text) => Buffer.from(text, 'utf16le') }
  if (file[0] === 0xfe && file[1] === 0xff)
    return { name: 'UTF-16', width: 2, encode: (text) => Buffer.from(text, 'utf16le').swap16() }
  if (isUtf8(file)) return { name: 'UTF-8', width: 1, encode: (text) => Buffer.from(text, 'utf8') }
  return { name: 'Windows-1252 or another encoding of one byte a character', width: 1, encode: encodeWindows1252 }
}

let windows1252: Map<string, number> | undefined

function encodeWindows1252(text: string): Buffer | undefined {
  windows1252 ??= new Map(
    [...new TextDecoder('windows-1252').decode(Uint8Array.from({ length: 256 }, (_, i) => i))].map((char, i) => [
      char,
      i,
    ]),
  )
  const bytes = [...text].map((char) => windows1252!.get(char))
  return bytes.every((byte) => byte !== undefined) ? Buffer.from(bytes) : undefined
}

function place(file: Buffer, find: string, content: string, encode: Encoding['encode'], width: 1 | 2) {
  const [old, fresh] = [encode(find), encode(content)]
  return { old, fresh, ...(old ? count(file, old, width) : { times: 0, at: -1 }) }
}

/** Places that don't overlap, and where the first is. */
function count(file: Buffer, what: Buffer, width: 1 | 2): { times: number; at: number } {
  let times = 0
  let first = -1
  for (let from = 0; ; ) {
    const at = file.indexOf(what, from)
    if (at < 0) return { times, at: first }
    if (at % width !== 0) from = at + 1
    else {
      if (times++ === 0) first = at
      from = at + what.length
    }
  }
}
