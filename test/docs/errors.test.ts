/** docs/errors.md lists exactly the errors and warnings of the source. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ERRORS } from '../../src/domain/errors.ts'
import { ROOT } from './blocks.ts'

const PAGE = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')
const SOURCE = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'))
  .join('\n')

test('lists each error with its status, whether it can be retried, its cause and its fix', () => {
  const sections = [...PAGE.matchAll(/^### `(\w+)`\n\n([\s\S]*?)(?=\n##|$(?![\s\S]))/gm)]
  expect(sections.map(([, code]) => code).sort()).toEqual(Object.keys(ERRORS).sort())
  for (const [, code, text = ''] of sections) {
    const { status, retryable } = ERRORS[code as keyof typeof ERRORS]
    // The model's provider decides whether its error is retryable.
    const again = code === 'model_error' ? '; `retryable` as' : retryable ? ', retryable after' : ', not retryable.'
    expect(text, code).toMatch(new RegExp(`^${status}${again}`))
    expect(text, code).toMatch(/\*\*Cause\*\*: \S[\s\S]*\*\*Cure\*\*: \S/)
  }
})

test('lists each warning of the source', () => {
  const table = PAGE.slice(PAGE.indexOf('## Warnings')).matchAll(/^\| (`[^|]+) \|/gm)
  const named = [...table].flatMap(([, codes = '']) => codes.split(' · ').map((code) => code.replaceAll('`', '')))
  const given = SOURCE.matchAll(/(?:\bcode: |\bwarn\()'([a-z]+_[a-z_]+)'/g)
  const warnings = new Set([...given].map(([, code = '']) => code).filter((code) => !(code in ERRORS)))
  expect(named.sort()).toEqual([...warnings].sort())
})
