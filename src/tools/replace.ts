/**
 * Replaces pieces of text in a file, all or none. Works on bytes, with the texts in the file's encoding, so that every other
 * byte stays as it is. All places are looked up in the file as it is, before any is replaced.
 */

import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { createSearch } from '../domain/search.ts'
import { describeNearest } from './nearest-lines.ts'
import { type Encoding, encodingOf } from './text-encoding.ts'

export interface Edit {
  readonly find: string
  readonly replace: string
  /** Replaces each occurrence; otherwise `find` must occur exactly once. */
  readonly all?: boolean | undefined
}

export type Replacement =
  | {
      readonly ok: true
      readonly bytes: Buffer
      /** Number of replaced places. */
      readonly places: number
      /** `at lines 3 and 7`: the first places, in the file before the change. */
      readonly at: string
      readonly note: string
    }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export interface Problem {
  readonly edit: number
  /** The reason and what to do, for the model. */
  readonly why: string
}

interface Place {
  readonly start: number
  readonly end: number
  readonly edit: number
}

const MIB = 1024 * 1024
/** Bytes that are searched before other work may run: about a millisecond. */
const SLICE_BYTES = 256 * 1024
/** Maximum size of the file times number of edits. */
const MAX_SEARCHED = 256 * MIB
const MAX_RESULT = 32 * MIB
const MAX_PLACES = 20_000
const PLACES_AT_ONCE = 5_000
/** Maximum number of problems, of nearest texts, and of line numbers that are reported. */
const MAX_PROBLEMS = 5
const MAX_NEAREST = 3
const MAX_LINES = 10
/** The part of the file in which the nearest text is searched. */
const NEAREST_BYTES = 2 * MIB

export async function replaceTexts(file: Buffer, edits: readonly Edit[]): Promise<Replacement> {
  if (file.length * edits.length > MAX_SEARCHED)
    return problem(0, `${edits.length} edits are too many for a file of ${file.length} bytes. Make fewer in a call.`)
  const encoding = encodingOf(file)
  const places: Place[] = []
  const texts: Buffer[] = []
  const problems: Problem[] = []
  let windows = false
  for (const [edit, { find, replace, all = false }] of edits.entries()) {
    const found = await locate(file, find, replace, encoding, all ? MAX_PLACES + 1 : MAX_LINES)
    const why = await refusal(file, edits[edit]!, found, encoding, problems.length < MAX_NEAREST)
    if (why !== undefined) problems.push({ edit, why })
    if (problems.length === MAX_PROBLEMS) break
    if (why !== undefined) continue
    texts[edit] = found.fresh!
    windows ||= found.windows
    for (const start of found.starts) places.push({ start, end: start + found.old!.length, edit })
    if (places.length > MAX_PLACES)
      return problem(edit, `more than ${MAX_PLACES} places would be replaced in one call.`)
  }
  if (problems.length > 0) return { ok: false, problems }
  return apply(file, places, texts, encoding, windows)
}

function problem(edit: number, why: string): Replacement {
  return { ok: false, problems: [{ edit, why }] }
}

async function apply(
  file: Buffer,
  places: Place[],
  texts: readonly Buffer[],
  encoding: Encoding,
  windows: boolean,
): Promise<Replacement> {
  places.sort((a, b) => a.start - b.start)
  const overlap = places.findIndex(({ start }, i) => i > 0 && start < places[i - 1]!.end)
  if (overlap > 0) {
    const { edit, start } = places[overlap]!
    const [line] = await linesAt(file, [start], encoding)
    return problem(edit, `it overlaps edits[${places[overlap - 1]!.edit}] at line ${line}. Make them one edit.`)
  }
  const size = places.reduce((sum, { start, end, edit }) => sum + texts[edit]!.length - (end - start), file.length)
  if (size > MAX_RESULT)
    return problem(
      places.at(-1)!.edit,
      `the file would have ${size} bytes, more than ${MAX_RESULT}. Use code_execution.`,
    )
  const first = places.slice(0, MAX_LINES).map(({ start }) => start)
  return {
    ok: true,
    bytes: await assembled(file, places, texts, size),
    places: places.length,
    at: listed(await linesAt(file, first, encoding), places.length > first.length),
    note: windows ? ' The file has Windows line endings; they were kept.' : '',
  }
}

async function assembled(
  file: Buffer,
  places: readonly Place[],
  texts: readonly Buffer[],
  size: number,
): Promise<Buffer> {
  const made = Buffer.allocUnsafe(size)
  let from = 0
  let to = 0
  for (const [i, { start, end, edit }] of places.entries()) {
    to += file.copy(made, to, from, start)
    to += texts[edit]!.copy(made, to)
    from = end
    if (i % PLACES_AT_ONCE === PLACES_AT_ONCE - 1) await yieldToOthers()
  }
  file.copy(made, to, from)
  return made
}

interface Located {
  /** The texts in the file's encoding. Undefined if it lacks a character. */
  readonly old: Buffer | undefined
  readonly fresh: Buffer | undefined
  readonly times: number
  /** The first places. */
  readonly starts: readonly number[]
  /** Line endings of the texts were changed to the file's, `\r\n`. */
  readonly windows: boolean
}

async function locate(file: Buffer, find: string, replace: string, encoding: Encoding, most: number): Promise<Located> {
  const look = async (from: string, to: string, windows: boolean): Promise<Located> => {
    const [old, fresh] = [encoding.encode(from), encoding.encode(to)]
    let times = 0
    const starts: number[] = []
    if (old)
      await scan(file, old, encoding.width, (start) => {
        if (times++ < most) starts.push(start)
      })
    return { old, fresh, times, starts, windows }
  }
  const asWritten = await look(find, replace, false)
  // Models write \n even if the file has \r\n. A text that contains \r\n is used as it is.
  if (asWritten.times > 0 || !find.includes('\n') || find.includes('\r')) return asWritten
  const crlf = (text: string) => text.replaceAll('\n', '\r\n')
  const windows = await look(crlf(find), crlf(replace), true)
  return windows.times > 0 ? windows : asWritten
}

/** Why an edit can't be made. Undefined if it can. */
async function refusal(
  file: Buffer,
  { find, all }: Edit,
  { old, fresh, times, starts }: Located,
  encoding: Encoding,
  showNearest: boolean,
): Promise<string | undefined> {
  if (!old || !fresh)
    return `the file's encoding is ${encoding.name}, which can't represent every character of the text.`
  if (times === 1 || (all && times > 0)) return undefined
  if (times > 1) {
    const lines = listed(await linesAt(file, starts, encoding), times > starts.length)
    return `\`find\` occurs ${times} times in it, ${lines}; it must occur exactly once. Include more of the surrounding text.`
  }
  const near = showNearest ? await describeNearest(encoding.decode(file.subarray(0, NEAREST_BYTES)), find) : undefined
  const advice = `\`find\` occurs 0 times in it${all ? '' : '; it must occur exactly once'}. Read the file and copy the text exactly, including spaces.`
  return near === undefined ? advice : `${advice} ${near}`
}

/** `at lines 3, 7 and 12` */
function listed(lines: readonly number[], more = false): string {
  const unique = [...new Set(lines)]
  if (unique.length === 1) return `${more ? 'first ' : ''}at line ${unique[0]}`
  if (more) return `at lines ${unique.join(', ')}, …`
  return `at lines ${unique.slice(0, -1).join(', ')} and ${unique.at(-1)}`
}

/** Line numbers of ascending positions. */
async function linesAt(file: Buffer, positions: readonly number[], { encode, width }: Encoding): Promise<number[]> {
  const lines: number[] = []
  let line = 1
  await scan(file.subarray(0, positions.at(-1)), encode('\n')!, width, (start) => {
    while (positions[lines.length]! <= start) lines.push(line)
    line++
  })
  while (lines.length < positions.length) lines.push(line)
  return lines
}

/** Calls `found` for each match; matches don't overlap. Yields to the event loop. */
async function scan(file: Buffer, what: Buffer, width: 1 | 2, found: (start: number) => void): Promise<void> {
  let from = 0
  const search = createSearch([what]).start((start, end) => {
    if (start < from || start % width !== 0) return
    from = end
    found(start)
  })
  for (let at = 0; at < file.length; at += SLICE_BYTES) {
    search(file.subarray(at, at + SLICE_BYTES))
    await yieldToOthers()
  }
}
