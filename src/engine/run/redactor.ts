/**
 * Keeps a run's secrets out of what it shows. A server may send back the very header that it was signed in to with; so
 * each secret that is used for a run is known here, and all that a tool says passes through before it is stored, streamed
 * or put before the model.
 *
 * Very short texts are let pass: replacing every `test` of an output would spoil it, and hide nothing.
 */

import { ErrandError } from '../../domain/errors.ts'
import { createSearch, type Scan, type Search, type Span, unitsOf } from '../../domain/search.ts'

const MASK = '[secret]'
const MIN_CHARS = 6
/** Characters of a run's secrets together. The search for them takes memory and time to build for each. */
const MAX_CHARS = 64 * 1024

export interface Redactor {
  /**
   * From now on these are not shown, nor their common spellings. Throws ErrandError `invalid_request` over 64 Ki characters
   * in all.
   */
  conceal(secrets: readonly string[]): void
  redact(text: string): string
  /** Whether its JSON shows none of them. */
  isClean(value: object): boolean
  /** For text that comes in pieces: what may be the beginning of a secret is held until more comes, or `end`. */
  stream(emit: (text: string) => void): { write(text: string): void; end(): void }
}

export function createRedactor(): Redactor {
  let secrets: ReadonlySet<string> = new Set()
  /** Made when it is first needed: secrets become known one after the other. */
  let search: Search | undefined

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
    // Asked of every tool before every turn, and most runs have no secret.
    isClean(value) {
      if (secrets.size === 0) return true
      let clean = true
      const look = current().start(() => {
        clean = false
      })
      look(unitsOf(JSON.stringify(value)))
      return clean
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
            // A secret became known meanwhile: what is held is searched for it, too.
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

/** As it is, in JSON, in an address, in base64 on its own. */
function spellings(secret: string): string[] {
  const base64 = Buffer.from(secret).toString('base64').replaceAll('=', '')
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), base64]
}
