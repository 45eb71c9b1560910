/**
 * Continues an answer that broke off after part of it was shown. The model gets that part back with an instruction
 * (domain/prompts.ts), and any repetition is removed, so the joined fragments are the answer.
 *
 * The assistant's message is not prefilled: OpenAI, Gemini and current Claude models refuse that.
 */
import { NOTHING_LEFT } from '../../domain/prompts.ts'

/** Characters of a continuation that are compared first. Shorter repetitions count from `SHORTEST` characters. */
const HEAD = 32
/** Shorter repetitions may be coincidence: `na` continues `bana`. So may periodic ones, such as a line of dashes. */
const SHORTEST = 8
/** Positions in the shown text that are compared. Bounds the work. */
const MAX_CANDIDATES = 64

export interface OverlapFilter {
  /** The part of the fragments so far that is new and was not returned before. */
  push(fragment: string): string
  /** The rest, when no more fragments come. */
  end(): string
}

/**
 * Removes the repeated part of a continuation: its longest prefix that is a suffix of `shown`. Holds text back while it may
 * still be a repetition. Linear in the text, with at most `MAX_CANDIDATES` comparisons a character.
 */
export function createOverlapFilter(shown: string): OverlapFilter {
  let held = ''
  let decided = false
  /** Positions in `shown` where the repetition may begin, ascending. Undefined before `HEAD` characters have arrived. */
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
      // The same answer again is a repetition, however short it is.
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

/** Length of a repetition of fewer than `HEAD` characters; 0 if there is none. */
function shortOverlap(shown: string, continuation: string): number {
  for (let length = Math.min(HEAD - 1, shown.length, continuation.length); length >= SHORTEST; length--)
    if (shown.endsWith(continuation.slice(0, length)) && !repeatsItself(continuation.slice(0, length))) return length
  return 0
}

/** True if a text is periodic: one unit at least twice, the last one possibly cut off. */
function repeatsItself(text: string): boolean {
  const at = (text + text).indexOf(text.slice(0, HEAD), 1)
  return at <= text.length / 2 && text.startsWith(text.slice(at))
}
