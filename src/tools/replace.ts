/**
 * Replaces one piece of text in a file. Works on bytes, with the texts in the file's encoding, so that every other byte
 * stays as it is.
 */

import { isUtf8 } from 'node:buffer'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { createSearch } from '../domain/search.ts'

export type Replacement =
  | {
      readonly ok: true
      /** The new file, in parts. */
      readonly parts: readonly Buffer[]
      /** The line of the replaced text, from 1. */
      readonly line: number
      readonly note: string
    }
  /** `why`: the reason and what to do, for the model. */
  | { readonly ok: false; readonly why: string }

/** Bytes that are searched before other work may run: about a millisecond. */
const SLICE_BYTES = 256 * 1024

export async function replaceOnce(file: Buffer, find: string, content: string): Promise<Replacement> {
  const { name, width, encode } = encodingOf(file)
  const asWritten = await place(file, find, content, encode, width)
  // Models write \n even if the file has \r\n. A text that contains \r\n is used as it is.
  const windows = (text: string) => text.replaceAll('\n', '\r\n')
  const crlf =
    asWritten.times === 0 && find.includes('\n') && !find.includes('\r')
      ? await place(file, windows(find), windows(content), encode, width)
      : asWritten
  const { times, at, old, fresh } = crlf.times > 0 ? crlf : asWritten
  if (!old || !fresh)
    return { ok: false, why: `the file's encoding is ${name}, which can't represent every character of the text.` }
  if (times !== 1)
    return {
      ok: false,
      why: `\`find\` occurs ${times} times in it; it must occur exactly once. ${advice(times)}`,
    }
  const before = file.subarray(0, at)
  const note = crlf.times === 1 && crlf !== asWritten ? ' The file has Windows line endings; they were kept.' : ''
  const line = 1 + (await count(before, encode('\n')!, width)).times
  return { ok: true, parts: [before, fresh, file.subarray(at + old.length)], line, note }
}

function advice(times: number): string {
  return times > 1
    ? 'Include more of the surrounding text.'
    : 'Read the file and copy the text exactly, including spaces.'
}

interface Encoding {
  readonly name: string
  /** Bytes of a code unit. A match begins at a multiple of it. */
  readonly width: 1 | 2
  /** Returns undefined if the encoding lacks a character. */
  encode(text: string): Buffer | undefined
}

function encodingOf(file: Buffer): Encoding {
  if (file[0] === 0xff && file[1] === 0xfe)
    return { name: 'UTF-16', width: 2, encode: (text) => Buffer.from(text, 'utf16le') }
  if (file[0] === 0xfe && file[1] === 0xff)
    return { name: 'UTF-16', width: 2, encode: (text) => Buffer.from(text, 'utf16le').swap16() }
  if (isUtf8(file)) return { name: 'UTF-8', width: 1, encode: (text) => Buffer.from(text, 'utf8') }
  return { name: 'Windows-1252 or another single-byte encoding', width: 1, encode: encodeWindows1252 }
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

async function place(file: Buffer, find: string, content: string, encode: Encoding['encode'], width: 1 | 2) {
  const [old, fresh] = [encode(find), encode(content)]
  return { old, fresh, ...(old ? await count(file, old, width) : { times: 0, at: -1 }) }
}

/** Counts matches that don't overlap, and returns the position of the first. Yields to the event loop. */
async function count(file: Buffer, what: Buffer, width: 1 | 2): Promise<{ times: number; at: number }> {
  let times = 0
  let first = -1
  let from = 0
  const search = createSearch([what]).start((start, end) => {
    if (start < from || start % width !== 0) return
    if (times++ === 0) first = start
    from = end
  })
  for (let at = 0; at < file.length; at += SLICE_BYTES) {
    search(file.subarray(at, at + SLICE_BYTES))
    await yieldToOthers()
  }
  return { times, at: first }
}
