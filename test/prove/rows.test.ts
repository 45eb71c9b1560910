/** Checks that the table in rows.ts lists every test file of this folder, and only files that exist. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROWS, testsOf } from './rows.ts'

const ROOT = join(import.meta.dirname, '../..')

test('each row names files that exist', () => {
  const named = ROWS.flatMap((row) => [...testsOf(row), ...(row.script ? [row.script] : [])])
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('each test file named after a row is listed in that row', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => /^[rs]\d/.test(name))
  expect(ROWS.flatMap(testsOf)).toEqual(expect.arrayContaining(files.map((name) => `test/prove/${name}`)))
})

test('no row is listed twice', () => {
  expect(new Set(ROWS.map(({ id }) => id)).size).toBe(ROWS.length)
})
