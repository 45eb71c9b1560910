/**
 * The `Prefer` header (RFC 7240): `wait=N`, `respond-async`, `return=minimal`, `handling=strict`. Unknown and malformed
 * preferences are ignored, as the RFC requires. `Preference-Applied` lists the ones that were followed.
 */

/** Longer than any run. Timers can't be longer than 24 days. */
const MAX_WAIT_S = 86_400

export interface Preferences {
  /** Maximum seconds to wait for the end. 0 for `respond-async` alone. Undefined: no maximum. */
  readonly waitS: number | undefined
  readonly minimal: boolean
  readonly strict: boolean
  /** Known preferences as sent, for `Preference-Applied`. */
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
    // If a preference is repeated, the first one counts (RFC 7240, 2).
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
