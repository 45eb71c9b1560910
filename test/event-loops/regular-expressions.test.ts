/**
 * Every regular expression of the server and the sandbox host is proven to take linear time (by recheck, which also detects
 * quadratic time), or is listed with the bound of its input.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { EXCEPTIONS, type Exception } from './exceptions.ts'
import { expressionsBelow, expressionsOf } from './expressions.ts'

type CheckSync = typeof import('recheck').checkSync
let checkSync: CheckSync
beforeAll(async () => {
  // Otherwise recheck looks for Java and native programs. It reads the variable when it is loaded.
  process.env.RECHECK_BACKEND = 'pure'
  checkSync = (await import('recheck')).checkSync
})

/** Without a timeout, because the result must not depend on the machine. */
function verdict(pattern: string, flags: string): string {
  const found = checkSync(pattern, flags, { timeout: null, randomSeed: 1 })
  return found.status === 'vulnerable' ? `vulnerable: ${found.complexity.summary}` : found.status
}

/**
 * Literals that recheck found linear, one a line, below the version of recheck. Checking all of them takes more than half a
 * minute, and the verdict of a literal never changes; the test checks those that are not recorded. To check and record all
 * again:
 *
 *     ERRAND_RECORD=1 npx vitest run --project errand test/event-loops/regular-expressions.test.ts
 */
const RECORD = join(import.meta.dirname, 'linear-expressions.txt')
const RECORDING = process.env.ERRAND_RECORD !== undefined
const CHECKER = `recheck ${createRequire(import.meta.url)('recheck/package.json').version}`

/** Recorded literals. Empty if another version of recheck found them. */
function recorded(): string[] {
  const [checker, ...expressions] = readFileSync(RECORD, 'utf8').split('\n')
  return checker === CHECKER ? expressions : []
}

const { literals, dynamic } = expressionsBelow(resolve(import.meta.dirname, '../../src'))

function exceptionOf(file: string, pattern: string): Exception | undefined {
  return EXCEPTIONS.find((each) => {
    const there = each.place.endsWith('/') ? file.startsWith(each.place) : file === each.place
    return there && (each.pattern === undefined || each.pattern === pattern)
  })
}

it('all literals are linear, or listed with a bound', { timeout: 900_000 }, () => {
  expect(literals.length).toBeGreaterThan(300)
  const verdicts = new Map<string, string>(RECORDING ? [] : recorded().map((key) => [key, 'safe']))
  const found = new Set<string>()
  const faults = literals.flatMap(({ file, line, pattern, flags }) => {
    if (exceptionOf(file, pattern)) return []
    const key = `/${pattern}/${flags}`
    if (!verdicts.has(key)) verdicts.set(key, verdict(pattern, flags))
    if (verdicts.get(key) !== 'safe') return [`src/${file}:${line} ${key} is ${verdicts.get(key)}`]
    found.add(key)
    return []
  })
  expect(faults).toEqual([])
  if (RECORDING) writeFileSync(RECORD, [CHECKER, ...[...found].sort(), ''].join('\n'))
})

it('all constructor calls are listed with a bound', () => {
  expect(dynamic.filter(({ file, source }) => !exceptionOf(file, source))).toEqual([])
})

it('no listed exception is unused', () => {
  const all = [...literals, ...dynamic.map(({ file, source }) => ({ file, pattern: source }))]
  const used = new Set(all.map(({ file, pattern }) => exceptionOf(file, pattern)))
  const specific = EXCEPTIONS.filter(({ pattern }) => pattern !== undefined)
  const alone = specific.filter((each) => !used.has(each) && !all.some((one) => one.pattern === each.pattern))
  expect(alone).toEqual([])
})

it.each([
  ['the trim that stalled the server', String.raw`text.replace(/\n+$/, '')`],
  ['the search that stalled the sandbox host', '/spawn(?:Sync)? .*EAGAIN|Cannot fork/.test(text)'],
  ['an exponential one', '/^(a|a)*$/.test(text)'],
])('finds %s', (_, source) => {
  const [found] = expressionsOf('example.ts', source).literals
  expect(verdict(found!.pattern, found!.flags)).toMatch(/^vulnerable/)
})
