/** Checks that docs/metrics.md lists every metric, and that Prometheus's linter accepts the metrics. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { exposition, readServed, sumOf } from './exposition.ts'

test('docs/metrics.md has one row for each metric, with its labels, type and help text', async () => {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `errand_.*\|$/gm)].map(([row]) => row)
  const served = readServed(await exposition()).map(({ name, type, help, labels }) => {
    return `| \`${name}${labels.length > 0 ? `{${labels.join(',')}}` : ''}\` | ${type} | ${help} |`
  })
  expect(served.length).toBeGreaterThan(30)
  expect(rows.sort()).toEqual(served.sort())
})

test('names, units and types follow Prometheus’s conventions', async () => {
  // Metrics of libraries are excluded: we do not choose their names.
  const ours = (await exposition()).replaceAll(/^(?:# \w+ )?(?:nodejs|process)_.*\n/gm, '')
  expect(execFileSync('promtool', ['check', 'metrics'], { input: ours, encoding: 'utf8' })).toBe('')
})

test('a source that fails is reported in errand_up and left out, and other metrics are served', async () => {
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
