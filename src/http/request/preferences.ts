/**
 * The `Prefer` header (RFC 7240): `wait=N`, `respond-async`, `return=minimal`, `handling=strict`. A preference that is
 * unknown or malformed is passed over, as the RFC has it; which ones were followed is told in `Preference-Applied`.
 */

/** Longer than any run; a timer takes no more than 24 days. */
const MAX_WAIT_S = 86_400

export interface Preferences {
  /** Seconds to wait for the end at most. `respond-async` alone is 0. Undefined: until the end. */
  readonly waitS: number | undefined
  readonly minimal: boolean
  readonly strict: boolean
  /** As sent, for `Preference-Applied`. */
  readonly asked: ReadonlySet<string>
}

const NONE: Preferences = { waitS: undefined, minimal: false, strict: false, asked: new Set() }

export function parsePrefer(header: string | readonly string[] | undefined): Preferences {
  if (header === undefined) return NONE
  const asked = new Set<string>()
  let waitS: number | undefined
  let async = false
  for (const part of [header].flat().join(',').split(',')) {
    const preference = part
      .split(';')[0]!
      .toLowerCase()
      .split('=')
      .map((side) => side.trim())
      .join('=')
      .replaceAll('"', '')
    const wait = /^wait=(\d{1,9})$/.exec(preference)
    // The first one counts where a preference is said twice (RFC 7240, 2).
    if (wait) waitS ??= Math.min(Number(wait[1]), MAX_WAIT_S)
    else if (preference === 'respond-async') async = true
    else if (!KNOWN.has(preference)) continue
    asked.add(preference)
  }
  return {
    waitS: waitS ?? (async ? 0 : undefined),
    minimal: asked.has('return=minimal'),
    strict: asked.has('handling=strict'),
    asked,
  }
}

const KNOWN = new Set(['return=minimal', 'return=representation', 'handling=strict', 'handling=lenient'])
