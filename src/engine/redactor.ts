/**
 * Keeps a run's secrets out of what it shows. A server may send back the very header that it was signed in to with; so
 * each secret that is used for a run is known here, and all that a tool says passes through before it is stored, streamed
 * or put before the model.
 *
 * Very short texts are let pass: replacing every `test` of an output would spoil it, and hide nothing.
 */

const MASK = '[secret]'
const MIN_CHARS = 6

export interface Redactor {
  /** From now on these are not shown, nor the ways in which they are commonly written. */
  conceal(secrets: readonly string[]): void
  redact(text: string): string
  /** Whether its JSON shows none of them. */
  isClean(value: object): boolean
  /** For text that comes in pieces: what may be the beginning of a secret is held until more comes, or `end`. */
  stream(emit: (text: string) => void): { write(text: string): void; end(): void }
}

export function createRedactor(): Redactor {
  /** Longest first: of two that overlap, the one that holds the other is taken. */
  let secrets: readonly string[] = []
  let pattern: RegExp | undefined

  const redact = (text: string) => (pattern ? text.replace(pattern, MASK) : text)

  /** How many characters at the end of `text` begin a secret. */
  function beginnings(text: string): number {
    let most = 0
    for (const secret of secrets) {
      const first = secret[0]!
      const from = Math.max(0, text.length - secret.length + 1)
      for (let at = text.indexOf(first, from); at >= 0 && text.length - at > most; at = text.indexOf(first, at + 1)) {
        if (secret.startsWith(text.slice(at))) most = text.length - at
      }
    }
    return most
  }

  return {
    conceal(more) {
      const all = new Set([...secrets, ...more.flatMap(spellings)])
      secrets = [...all].filter((secret) => secret.length >= MIN_CHARS).sort((a, b) => b.length - a.length)
      pattern = secrets.length > 0 ? new RegExp(secrets.map(escaped).join('|'), 'g') : undefined
    },
    redact,
    // Asked of every tool before every turn, and most runs have no secret.
    isClean: (value) => !pattern || JSON.stringify(value).search(pattern) < 0,
    stream(emit) {
      let held = ''
      return {
        write(text) {
          const clean = redact(held + text)
          const keep = beginnings(clean)
          held = clean.slice(clean.length - keep)
          if (clean.length > keep) emit(clean.slice(0, clean.length - keep))
        },
        end() {
          if (held !== '') emit(held)
          held = ''
        },
      }
    },
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** As it is, in JSON, in an address, in base64 on its own. */
function spellings(secret: string): string[] {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), base64]
}
