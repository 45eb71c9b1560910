/**
 * Checks that the messages, proof rows and tests named in docs/troubleshooting.md, docs/operating.md and
 * docs/guarantees.md exist.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROWS } from '../prove/rows.ts'
import { ROOT } from './blocks.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const SOURCE = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => read(join('src', name)))
  .join('\n')

test('every message quoted in docs/troubleshooting.md is in the source', () => {
  const quoted = [...read('docs/troubleshooting.md').matchAll(/`([A-Z…][^`]*[ ][^`]*)`/g)].map(([, text = '']) => text)
  const messages = quoted.filter(
    (text) => !text.startsWith('ERRAND_') && !text.startsWith('GET ') && text !== 'Could not resolve host',
  )
  expect(messages.length).toBeGreaterThan(25)
  for (const message of messages) {
    for (const part of message
      .split('…')
      .map((each) => each.trim())
      .filter((each) => each.length > 5)) {
      expect(SOURCE, message).toContain(part)
    }
  }
})

test('every log message quoted in docs/operating.md is in the source', () => {
  const texts = [...read('docs/operating.md').matchAll(/`([A-Za-z]+(?: [a-z]+){2,})`/g)].map(([, text]) => text!)
  const quoted = texts.filter((text) => !/^(?:systemctl|journalctl)/.test(text))
  expect(quoted.length).toBeGreaterThan(3)
  for (const text of quoted) expect(SOURCE).toContain(text)
})

test('the proof rows and tests named in docs/guarantees.md exist', () => {
  const page = read('docs/guarantees.md')
  const ids = ROWS.map(({ id }) => id)
  const named = [...page.matchAll(/\b([RS]\d+)\b/g)].map(([, id]) => id!)
  expect(named.length).toBeGreaterThan(30)
  expect(ids).toEqual(expect.arrayContaining(named))
  for (const [, path] of page.matchAll(/`(test\/[\w./-]+)`/g)) expect(existsSync(join(ROOT, path!)), path).toBe(true)
})
