/** The bench in its short form: its sides work, and every answer is right. How fast they were is not looked at. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const BENCH = new URL('../../bench/bench.ts', import.meta.url).pathname
/** Only a hang reaches it. */
const TIMEOUT_MS = 300_000

/** Servers that the bench starts are not part of this test run. */
const env = { ...process.env, VITEST: undefined }
const run = (...args: readonly string[]) => promisify(execFile)(process.execPath, [BENCH, ...args], { env })

it('runs the bare limit and Errand, without and with a sandbox, to whole answers', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { stdout } = await run('--short', 'throughput')
  for (const side of ['bare', 'Errand', 'Errand with sandbox'])
    expect(stdout).toMatch(new RegExp(`^  ${side} +\\d`, 'm'))
  expect(stdout).not.toContain('not measured')
})

it('holds streams where they are, and lets all go on to whole answers', { timeout: TIMEOUT_MS }, async () => {
  const { stdout } = await run('--short', 'streams')
  for (const side of ['bare', 'Errand']) expect(stdout).toMatch(new RegExp(`^  ${side} +-?\\d`, 'm'))
})

it('measures the agent: its runs survive broken streams and kills, and no request is refused', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { stdout } = await run('--short', 'A1', 'A2', 'A3', 'A5', 'A6')
  expect(stdout).toMatch(/^hit {2}A1 input read from the cache, 8 tool turns, two SIGKILLs/m)
  expect(stdout).toMatch(/^hit {2}A1 requests that the provider refused/m)
  expect(stdout).toMatch(/^hit {2}A2 .* runs that complete: 100 %/m)
  expect(stdout).toMatch(/^hit {2}A3 .* exact text: 100 %/m)
  expect(stdout).toMatch(/^hit {2}A5 400 MCP tools/m)
  expect(stdout).toMatch(/A6 two independent calls/)
})

it('names what it can measure where it is asked for something else', async () => {
  await expect(run('V99')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is no V99 to measure: throughput V1'),
  })
})
