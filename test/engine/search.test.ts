/** The search that covers secrets: what it finds, in however many pieces a text comes. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createSearch, unitsOf } from '../../src/domain/search.ts'
import { createMask } from '../../src/egress/mask.ts'
import { createRedactor } from '../../src/engine/run/redactor.ts'

/** Two letters make needles overlap, repeat and begin one another. */
const word = (minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom('a', 'b'), { minLength, maxLength }).map((letters) => letters.join(''))
const RUNS = { numRuns: 2_000 }

it('finds the longest needle at each end, as a naive search does', () => {
  fc.assert(
    fc.property(fc.array(word(1, 6), { minLength: 1, maxLength: 6 }), word(0, 60), (needles, text) => {
      const found: string[] = []
      createSearch(needles.map(unitsOf)).start((start, end) => found.push(`${start}-${end}`))(unitsOf(text))
      const naive: string[] = []
      for (let end = 1; end <= text.length; end++) {
        const there = needles.filter((needle) => text.slice(0, end).endsWith(needle))
        const longest = Math.max(0, ...there.map(({ length }) => length))
        if (longest > 0) naive.push(`${end - longest}-${end}`)
      }
      expect(found).toEqual(naive)
    }),
    RUNS,
  )
})

/** Each part that needles cover, overlapping ones as one, becomes one mask. */
function maskNaively(text: string, needles: readonly string[]): string {
  const found = needles.flatMap((needle) => {
    const starts = Array.from({ length: text.length }, (_, at) => at).filter((at) => text.startsWith(needle, at))
    return starts.map((start) => ({ start, end: start + needle.length }))
  })
  const spans: { start: number; end: number }[] = []
  for (const span of found.sort((a, b) => a.start - b.start)) {
    const last = spans.at(-1)
    if (last && span.start < last.end) last.end = Math.max(last.end, span.end)
    else spans.push({ ...span })
  }
  return spans.reduceRight((rest, { start, end }) => `${rest.slice(0, start)}[secret]${rest.slice(end)}`, text)
}

it('covers every unit of every needle, and nothing else, in whatever pieces a text comes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(word(6, 12), { minLength: 1, maxLength: 4 }),
      fc.array(word(0, 20), { minLength: 1, maxLength: 8 }),
      async (needles, pieces) => {
        const text = pieces.join('')
        const masked = maskNaively(text, needles)
        const mask = createMask(needles)
        expect(mask.text(text)).toBe(masked)
        const stream = mask.stream()
        for (const piece of pieces) stream.write(piece)
        stream.end()
        expect(Buffer.concat(await stream.toArray()).toString()).toBe(masked)
      },
    ),
    { numRuns: 500 },
  )
})

it('returns the same result for a text in pieces as for the whole text', () => {
  fc.assert(
    fc.property(
      fc.array(word(6, 12), { minLength: 1, maxLength: 4 }),
      fc.array(word(0, 20), { minLength: 1, maxLength: 8 }),
      (secrets, pieces) => {
        const redactor = createRedactor()
        redactor.conceal(secrets)
        let shown = ''
        const stream = redactor.stream((text) => (shown += text))
        for (const piece of pieces) stream.write(piece)
        stream.end()
        expect(shown).toBe(redactor.redact(pieces.join('')))
        for (const secret of secrets) expect(shown).not.toContain(secret)
      },
    ),
    RUNS,
  )
})
