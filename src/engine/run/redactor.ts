/**
 * Redacts a run's secrets. A server may echo the header that it was signed in to with. So every secret of a run is registered
 * here, and all tool output is redacted before it is stored, streamed or sent to the model.
 *
 * Very short secrets are not redacted: replacing every `test` would damage the output and hide nothing.
 */

import { ErrandError } from '../../domain/errors.ts'
import { createSearch, type Scan, type Search, type Span, unitsOf } from '../../domain/search.ts'

const MASK = '[secret]'
const MIN_CHARS = 6
/** Maximum length of a run's secrets together. Each character costs memory and time in the search. */
const MAX_CHARS = 64 * 1024

export interface Redactor {
  /**
   * Redacts these secrets and their common encodings from now on. Throws ErrandError `invalid_request` above 64 Ki characters
   * in total.
   */
  conceal(secrets: readonly string[]): void
  redact(text: string): string
  /** True if the value's JSON contains no secret. */
  isClean(value: object): boolean
  /** Redacts text in pieces. Holds a possible beginning of a secret until more text or `end`. */
  stream(emit: (text: string) => void): { write(text: string): void; end(): void }
}

export function createRedactor(): Redactor {
  let secrets: ReadonlySet<string> = new Set()
  /** Built on first use, because secrets are added one after the other. */
  let search: Search | undefined
  /** Values that were found to be clean, each with the search that found it. */
  const clean = new WeakMap<object, Search>()

  function current(): Search {
    search ??= createSearch([...new Set([...secrets].flatMap(spellings))].map(unitsOf))
    return search
  }

  function redact(text: string): string {
    if (secrets.size === 0) return text
    const scan = current().scan()
    const { clear, spans } = scan.feed(unitsOf(text))
    return masked(text.slice(0, clear), spans) + masked(text.slice(clear), scan.end())
  }

  return {
    conceal(more) {
      const all = new Set([...secrets, ...more.filter(({ length }) => length >= MIN_CHARS)])
      if (all.size === secrets.size) return
      if ([...all].reduce((sum, { length }) => sum + length, 0) > MAX_CHARS) throw tooMany()
      secrets = all
      search = undefined
    },
    redact,
    // Called for every tool before every turn, and most runs have no secret.
    isClean(value) {
      if (secrets.size === 0 || clean.get(value) === current()) return true
      let found = false
      const look = current().start(() => {
        found = true
      })
      look(unitsOf(JSON.stringify(value)))
      if (!found) clean.set(value, current())
      return !found
    },
    stream(emit) {
      let held = ''
      let scan: Scan | undefined
      let searchOfScan: Search | undefined
      const say = (text: string) => text !== '' && emit(text)
      return {
        write(text) {
          if (secrets.size === 0) return emit(text)
          let piece = text
          if (!scan || searchOfScan !== current()) {
            // A secret was added meanwhile: search the held text for it, too.
            piece = held + text
            held = ''
            searchOfScan = current()
            scan = searchOfScan.scan()
          }
          const { clear, spans } = scan.feed(unitsOf(piece))
          const whole = held + piece
          held = whole.slice(clear)
          say(masked(whole.slice(0, clear), spans))
        },
        end() {
          say(masked(held, scan?.end() ?? []))
          held = ''
          scan = undefined
        },
      }
    },
  }
}

function masked(text: string, spans: readonly Span[]): string {
  let shown = ''
  let from = 0
  for (const { start, end, continues } of spans) {
    shown += text.slice(from, start) + (continues ? '' : MASK)
    from = end
  }
  return shown + text.slice(from)
}

function tooMany(): ErrandError {
  const most = MAX_CHARS.toLocaleString('en-US')
  return new ErrandError(
    'invalid_request',
    `The secrets of this run have more than ${most} characters together. Use fewer credentials, or shorter ones.`,
  )
}

/** The secret as it is, in JSON, URL-encoded, and in base64. */
function spellings(secret: string): string[] {
  const base64 = Buffer.from(secret).toString('base64').replaceAll('=', '')
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), base64]
}
