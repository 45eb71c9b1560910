/**
 * Continuing an answer that broke off after part of it was shown: the model gets that part back with one instruction
 * (prompts.ts), and what it repeats is removed, so that the joined fragments are the answer.
 *
 * Not by prefilling the assistant's message, which OpenAI, Gemini and current Claude models refuse: one way for all.
 */
import { NOTHING_LEFT } from '../../domain/prompts.ts'

/** Characters of a continuation that are compared at first. A shorter repetition counts from `SHORTEST` on. */
const HEAD = 32
/** A repetition of fewer characters may be chance: `na` continues `bana`. So may one that repeats itself: a line of dashes. */
const SHORTEST = 8
/** Places in the shown text that may begin with the same `HEAD` characters; a bound on the work. */
const MAX_CANDIDATES = 64

export interface OverlapFilter {
  /** The part of the fragments so far that is new and was not returned before. */
  push(fragment: string): string
  /** The rest, when no more fragments come. */
  end(): string
}

/**
 * Removes what a continuation repeats of the text before it: its longest beginning that is an end of `shown`. Holds text
 * back while it may still be a repetition. Linear in the text, with at most `MAX_CANDIDATES` comparisons a character.
 */
export function createOverlapFilter(shown: string): OverlapFilter {
  let held = ''
  let decided = false
  /** Where in `shown` the repetition may have begun, ascending. Undefined until `HEAD` characters are there. */
  let candidates: number[] | undefined
  /** Length of the longest repetition that reached the end of `shown`. */
  let repeated = 0
  let compared = 0

  function decide(): string {
    decided = true
    const rest = held.slice(repeated || shortOverlap(shown, held))
    held = ''
    return rest
  }

  /** Keeps the candidates that still match and would be a longer repetition. */
  function compare(): void {
    const open: number[] = []
    for (const from of candidates ?? placesOf(held.slice(0, HEAD), shown)) {
      const length = shown.length - from
      if (length <= repeated || !shown.startsWith(held.slice(compared, length), from + compared)) continue
      if (length > held.length) open.push(from)
      else if (!repeatsItself(held.slice(0, length))) repeated = length
    }
    candidates = open
    compared = held.length
  }

  return {
    push(fragment) {
      if (decided) return fragment
      held += fragment
      if (held.length < HEAD) return ''
      compare()
      return candidates?.length ? '' : decide()
    },
    end() {
      if (decided) return ''
      // The same answer once more is a repetition, however short it is.
      if (held.trim() === NOTHING_LEFT || held.trim() === shown.trim()) held = ''
      return decide()
    },
  }
}

function placesOf(head: string, text: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(head); at >= 0 && places.length < MAX_CANDIDATES; at = text.indexOf(head, at + 1))
    places.push(at)
  return places
}

/** Of fewer than `HEAD` characters. */
function shortOverlap(shown: string, continuation: string): number {
  for (let length = Math.min(HEAD - 1, shown.length, continuation.length); length >= SHORTEST; length--)
    if (shown.endsWith(continuation.slice(0, length)) && !repeatsItself(continuation.slice(0, length))) return length
  return 0
}

/** Whether a text consists of one unit at least twice, the last time perhaps in part. */
function repeatsItself(text: string): boolean {
  const at = (text + text).indexOf(text.slice(0, HEAD), 1)
  return at <= text.length / 2 && text.startsWith(text.slice(at))
}
