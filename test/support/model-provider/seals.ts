/**
 * Opaque values that a provider returns with reasoning and checks when they come back: OpenAI's `encrypted_content` and
 * Gemini's `thoughtSignature`. A seal covers what it is attached to and, if bound, everything before that. Deterministic
 * for a seed; seals of another seed are not recognized.
 */
import { createHash } from 'node:crypto'

export interface Seals {
  seal(content: unknown, prefix: unknown): string
  /** Undefined if the seal fits. */
  check(seal: unknown, content: unknown, prefix: unknown): 'foreign' | 'edited' | 'moved' | undefined
}

interface Sealed {
  readonly content: string
  readonly prefix: string
  readonly key: string
}

/** `bound`: a seal fits only behind an unchanged prefix. */
export function createSeals(seed: number, bound: boolean): Seals {
  const keyOf = (content: string, prefix: string) => digestOf([seed, content, prefix])
  return {
    seal(content, prefix) {
      const sealed = { content: digestOf(content), prefix: digestOf(prefix) }
      const { content: c, prefix: p } = sealed
      return Buffer.from(JSON.stringify({ ...sealed, key: keyOf(c, p) })).toString('base64')
    },
    check(seal, content, prefix) {
      const found = read(seal)
      if (!found || found.key !== keyOf(found.content, found.prefix)) return 'foreign'
      if (found.content !== digestOf(content)) return 'edited'
      return bound && found.prefix !== digestOf(prefix) ? 'moved' : undefined
    },
  }
}

function read(seal: unknown): Sealed | undefined {
  try {
    return JSON.parse(Buffer.from(String(seal), 'base64').toString()) as Sealed
  } catch {
    return undefined
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64').slice(0, 16)
}
