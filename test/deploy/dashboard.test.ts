/** The Grafana dashboard: each panel says what it shows, asks for what is served, in PromQL that Prometheus reads. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { exposition, METRIC_NAME, metricNames, readServed } from '../telemetry/exposition.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } }
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[]
}

const DASHBOARD = JSON.parse(readFileSync(new URL('../../deploy/grafana/errand.json', import.meta.url), 'utf8'))
const PANELS: readonly Panel[] = DASHBOARD.panels
const GRAPHS = PANELS.filter(({ type }) => type !== 'row')
const EXPRESSIONS = GRAPHS.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))

test('has its five rows, and each panel has a title, a description, a unit and its own position', () => {
  expect(PANELS.filter(({ type }) => type === 'row').map(({ title }) => title)).toEqual([
    'Is it healthy?',
    'Is it saturated?',
    'What is slow?',
    'What does it cost?',
    'What fails?',
  ])
  expect(new Set(PANELS.map(({ id }) => id)).size).toBe(PANELS.length)
  const taken = new Map<string, string>()
  for (const { title, description, fieldConfig, targets = [], gridPos } of GRAPHS) {
    expect(description, title).toMatch(/\S/)
    expect(fieldConfig?.defaults.unit, title).toMatch(/\S/)
    expect(targets.length, title).toBeGreaterThan(0)
    expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      expect(x, title).toBeLessThan(24)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken.get(`${x} ${y}`), title).toBeUndefined()
        taken.set(`${x} ${y}`, title)
      }
    }
  }
})

test('every metric that it queries is served, and it queries every metric of Errand', async () => {
  const served = await metricNames()
  const asked = new Set<string>()
  for (const { title, expr } of EXPRESSIONS) {
    for (const [name] of expr.matchAll(METRIC_NAME)) {
      expect(served.has(name), `${title}: ${name}`).toBe(true)
      asked.add(name.replace(/_(?:bucket|sum|count)$/, ''))
    }
  }
  expect(readServed(await exposition()).filter(({ name }) => !asked.has(name))).toEqual([])
})

test('every expression is PromQL', () => {
  const rules = EXPRESSIONS.map(({ expr }, i) => ({
    record: `dashboard:expression:${i}`,
    // Grafana's own variables, as it would fill them in.
    expr: expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$(?:job|instance)/g, '.*'),
  }))
  const directory = mkdtempSync(join(tmpdir(), 'errand-dashboard-'))
  const file = join(directory, 'rules.yaml')
  writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules }] }))
  const said = execFileSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })
  expect(said).toContain(`SUCCESS: ${rules.length} rules found`)
  rmSync(directory, { recursive: true })
})
