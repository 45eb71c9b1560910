/** docs/metrics.md tells what /metrics serves, and Prometheus's own linter has nothing to say about it. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { exposition, readServed, sumOf } from './exposition.ts'

test('the page has a row for each metric, with its labels, type and words, and no other', async () => {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `errand_.*\|$/gm)].map(([row]) => row)
  const served = readServed(await exposition()).map(({ name, type, help, labels }) => {
    return `| \`${name}${labels.length > 0 ? `{${labels.join(',')}}` : ''}\` | ${type} | ${help} |`
  })
  expect(served.length).toBeGreaterThan(30)
  expect(rows.sort()).toEqual(served.sort())
})

test('names, units and types are as Prometheus wants them', async () => {
  // The libraries' own metrics are not ours to name.
  const ours = (await exposition()).replaceAll(/^(?:# \w+ )?(?:nodejs|process)_.*\n/gm, '')
  expect(execFileSync('promtool', ['check', 'metrics'], { input: ours, encoding: 'utf8' })).toBe('')
})

test('what can’t be looked up is left out and said, and takes nothing else with it', async () => {
  const text = await exposition({
    queue: () => Promise.reject(new Error('The database is away.')),
    sandboxes: () => Promise.reject(new Error('The host is away.')),
  })
  expect(sumOf(text, 'errand_up', { part: 'database' })).toBe(0)
  expect(sumOf(text, 'errand_up', { part: 'sandboxes' })).toBe(0)
  for (const gone of ['errand_interactions', 'errand_webhooks_pending', 'errand_sandboxes']) {
    expect(sumOf(text, gone), gone).toBeUndefined()
  }
  expect(sumOf(text, 'errand_worker_slots')).toBe(8)
})
