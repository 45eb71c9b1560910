/** The table of the proof lists every test file of this folder, and no others. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROWS, testsOf } from './rows.ts'

const ROOT = join(import.meta.dirname, '../..')

test('each row names files that exist', () => {
  const named = ROWS.flatMap((row) => [...testsOf(row), ...(row.script ? [row.script] : [])])
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('each file here that is named for a row shows it', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => /^[rs]\d/.test(name))
  expect(ROWS.flatMap(testsOf)).toEqual(expect.arrayContaining(files.map((name) => `test/prove/${name}`)))
})

test('no row is listed twice', () => {
  expect(new Set(ROWS.map(({ id }) => id)).size).toBe(ROWS.length)
})
