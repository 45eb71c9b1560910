/** Each alert fires on series that are trouble and on none that are not; it says how bad it is and where to read on. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { METRIC_NAME, metricNames } from '../telemetry/exposition.ts'

const FILE = new URL('../../deploy/prometheus/alerts.yaml', import.meta.url).pathname
const OPERATING = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const RULES: Rule[] = parse(readFileSync(FILE, 'utf8')).groups.flatMap(({ rules }: { rules: Rule[] }) => rules)

/** Series over an hour, a value a minute, in promtool's notation: `5x60` stays, `0+3x60` grows by 3 a minute. */
type Series = Readonly<Record<string, string>>

const I = 'instance="a",job="errand"'
const A = { instance: 'a', job: 'errand' }
const ended = (code: string) =>
  `errand_interactions_ended_total{${I},status="${code === 'none' ? 'completed' : 'failed'}",code="${code}"}`
const http = (status: number) =>
  `errand_http_request_duration_seconds_count{${I},method="GET",route="/x",status="${status}"}`
const called = (outcome: string) => `errand_model_call_duration_seconds_count{${I},model="m",outcome="${outcome}"}`
const written = (outcome: string) => `errand_database_write_duration_seconds_count{${I},outcome="${outcome}"}`
const opened = (outcome: string) =>
  `errand_sandbox_open_duration_seconds_count{${I},sandbox="main",outcome="${outcome}"}`
const bucket = (le: string) => `errand_database_write_duration_seconds_bucket{${I},outcome="done",le="${le}"}`
const waiting = `errand_database_connections{${I},state="waiting"}`

/** `fires`: each of these alone; `labels`: of the alert, beside its severity. */
const CASES: Readonly<
  Record<string, { fires: readonly Series[]; labels?: Series | readonly Series[]; quiet: readonly Series[] }>
> = {
  ErrandDown: {
    fires: [{ [`up{${I}}`]: '1x10 0x50' }],
    labels: A,
    quiet: [{ [`up{${I}}`]: '1x60' }, { 'up{instance="a",job="other"}': '0x60' }],
  },
  ErrandDatabaseUnavailable: {
    fires: [{ [`errand_up{${I},part="database"}`]: '0x60' }, { [written('unavailable')]: '0+1x60' }],
    labels: [
      { ...A, part: 'database' },
      { ...A, outcome: 'unavailable' },
    ],
    quiet: [
      { [`errand_up{${I},part="database"}`]: '1x60', [written('done')]: '0+100x60', [written('undone')]: '0+5x60' },
      { [`errand_up{${I},part="sandboxes"}`]: '0x60' },
    ],
  },
  ErrandSandboxesUnavailable: {
    fires: [
      { [`errand_up{${I},part="sandboxes"}`]: '0x60' },
      { [opened('failed')]: '0+1x60', [opened('created')]: '0+5x60' },
    ],
    labels: [{ ...A, part: 'sandboxes' }, { instance: 'a' }],
    quiet: [
      {
        [`errand_up{${I},part="sandboxes"}`]: '1x60',
        [opened('failed')]: '0+1x60',
        [opened('created')]: '0+50x60',
      },
      { [`errand_up{${I},part="database"}`]: '0x60' },
    ],
  },
  ErrandBroken: {
    fires: [
      { [`errand_runs_broken_total{${I}}`]: '0x50 1x10' },
      { [`errand_interactions_given_up_total{${I}}`]: '0x50 1x10' },
    ],
    labels: A,
    quiet: [{ [`errand_runs_broken_total{${I}}`]: '7x60', [`errand_interactions_given_up_total{${I}}`]: '0x60' }],
  },
  ErrandLeasesLost: {
    fires: [{ [`errand_leases_lost_total{${I}}`]: '0x50 2x10' }],
    labels: A,
    quiet: [{ [`errand_leases_lost_total{${I}}`]: '3x60' }],
  },
  ErrandFailing: {
    fires: [{ [ended('none')]: '0+8x60', [ended('model_error')]: '0+1x60', [ended('internal')]: '0+1x60' }],
    quiet: [
      { [ended('none')]: '0+100x60', [ended('model_error')]: '0+1x60' },
      // Callers' own deadlines and mistakes are not trouble of ours.
      { [ended('none')]: '0+1x60', [ended('deadline_exceeded')]: '0+9x60' },
    ],
  },
  ErrandHttpErrors: {
    fires: [{ [http(200)]: '0+10x60', [http(503)]: '0+1x60' }],
    quiet: [{ [http(200)]: '0+100x60', [http(503)]: '0+1x60', [http(404)]: '0+50x60' }],
  },
  ErrandModelFailing: {
    fires: [{ [called('ok')]: '0+3x60', [called('overloaded')]: '0+1x60' }],
    labels: { model: 'm' },
    quiet: [{ [called('ok')]: '0+9x60', [called('overloaded')]: '0+1x60', [called('aborted')]: '0+9x60' }],
  },
  ErrandModelResting: {
    fires: [{ [`errand_model_resting{${I},model="m"}`]: '1x60' }],
    labels: { model: 'm' },
    quiet: [{ [`errand_model_resting{${I},model="m"}`]: '0x60' }],
  },
  ErrandWebhooksPending: {
    fires: [{ [`errand_webhooks_pending{${I}}`]: '101x60' }],
    quiet: [{ [`errand_webhooks_pending{${I}}`]: '99x60' }],
  },
  ErrandQueueWaits: {
    fires: [{ [`errand_queue_oldest_wait_seconds{${I}}`]: '45x60' }],
    quiet: [{ [`errand_queue_oldest_wait_seconds{${I}}`]: '20x60' }],
  },
  ErrandSlotsTaken: {
    fires: [{ [`errand_worker_runs{${I}}`]: '8x60', [`errand_worker_slots{${I}}`]: '8x60' }],
    quiet: [
      { [`errand_worker_runs{${I}}`]: '7x60', [`errand_worker_slots{${I}}`]: '8x60' },
      // An api node has none.
      { [`errand_worker_runs{${I}}`]: '0x60', [`errand_worker_slots{${I}}`]: '0x60' },
    ],
  },
  ErrandDatabaseSlow: {
    fires: [{ [bucket('0.5')]: '0+90x60', [bucket('2.5')]: '0+100x60', [bucket('+Inf')]: '0+100x60' }],
    labels: { instance: 'a' },
    quiet: [{ [bucket('0.5')]: '0+100x60', [bucket('2.5')]: '0+100x60', [bucket('+Inf')]: '0+100x60' }],
  },
  ErrandDatabaseConnections: {
    fires: [{ [waiting]: '3x60' }],
    labels: { ...A, state: 'waiting' },
    quiet: [{ [waiting]: '0x60', [`errand_database_connections{${I},state="open"}`]: '10x60' }],
  },
  ErrandEventLoopLag: {
    fires: [{ [`nodejs_eventloop_lag_p99_seconds{${I}}`]: '0.8x60' }],
    labels: A,
    quiet: [{ [`nodejs_eventloop_lag_p99_seconds{${I}}`]: '0.02x60' }],
  },
  ErrandFileDescriptors: {
    fires: [{ [`process_open_fds{${I}}`]: '900x60', [`process_max_fds{${I}}`]: '1024x60' }],
    labels: A,
    quiet: [{ [`process_open_fds{${I}}`]: '90x60', [`process_max_fds{${I}}`]: '1024x60' }],
  },
  ErrandBudgetSpent: {
    fires: [{ [`errand_budgets_passed_total{${I},state="exceeded"}`]: '0x30 1x30' }],
    quiet: [{ [`errand_budgets_passed_total{${I},state="alert"}`]: '0x30 1x30' }],
  },
  ErrandSpend: {
    fires: [{ [`errand_model_cost_usd_total{${I},model="m"}`]: '0+3x60' }],
    quiet: [{ [`errand_model_cost_usd_total{${I},model="m"}`]: '0+1x60' }],
  },
}

function promtool(...args: string[]): string {
  return execFileSync('promtool', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Renders an annotation of an alert with these labels. */
function expand(text: string, labels: Series): string {
  return text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, name) => labels[name] ?? '')
}

function expected({ labels, annotations }: Rule, own: Series): object {
  const said = Object.entries(annotations).map(([name, text]) => [name, expand(text, own)])
  return { exp_labels: { ...labels, ...own }, exp_annotations: Object.fromEntries(said) }
}

function cases(rule: Rule): object[] {
  const { fires, labels = {}, quiet } = CASES[rule.alert]!
  const at = (series: Series, alerts: object[]) => ({
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [{ eval_time: '55m', alertname: rule.alert, exp_alerts: alerts }],
  })
  return [
    ...fires.map((series, i) => at(series, [expected(rule, Array.isArray(labels) ? labels[i] : labels)])),
    ...quiet.map((series) => at(series, [])),
  ]
}

test('each alert has a severity, words, and a place in the manual', () => {
  expect(promtool('check', 'rules', FILE)).toContain(`SUCCESS: ${RULES.length} rules found`)
  for (const rule of RULES) {
    expect(rule.for, rule.alert).toMatch(/^\d+m$/)
    expect(['warning', 'critical']).toContain(rule.labels.severity)
    for (const text of ['summary', 'description']) expect(rule.annotations[text], rule.alert).toMatch(/\S/)
    expect(rule.annotations.runbook_url).toBe(`docs/operating.md#${rule.alert.toLowerCase()}`)
    expect(OPERATING).toContain(`\n### ${rule.alert}\n`)
  }
})

test('each alert fires where it should, and does not where it should not', () => {
  expect(Object.keys(CASES).sort()).toEqual(RULES.map(({ alert }) => alert).sort())
  const directory = mkdtempSync(join(tmpdir(), 'errand-alerts-'))
  const file = join(directory, 'test.yaml')
  writeFileSync(file, stringify({ rule_files: [FILE], evaluation_interval: '1m', tests: RULES.flatMap(cases) }))
  expect(promtool('test', 'rules', file)).toContain('SUCCESS')
  rmSync(directory, { recursive: true })
})

test('every metric that an alert asks for is served', async () => {
  const served = await metricNames()
  for (const { alert, expr } of RULES) {
    for (const [name] of expr.matchAll(METRIC_NAME)) expect(served.has(name), `${alert}: ${name}`).toBe(true)
  }
})
