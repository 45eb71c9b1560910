/** Counters and histograms, updated by telemetry events. */
import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'
import { isToolName } from '../domain/agent.ts'
import type { TokenCount } from '../domain/usage.ts'
import type { TelemetryEvent } from './events.ts'

const SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800]
const SHORT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10, 30]
const WRITES = [1, 2, 4, 8, 16, 32, 64, 128, 256]

type Counters = { readonly [T in TelemetryEvent['type']]: (event: Extract<TelemetryEvent, { type: T }>) => void }

export function createCounters(registers: Registry[]): Counters {
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers })
  const histogram = <L extends string>(buckets: number[], name: string, help: string, ...labelNames: L[]) =>
    new Histogram({ name, help, labelNames, buckets, registers })

  const http = histogram(
    SECONDS,
    'errand_http_request_duration_seconds',
    'HTTP answers by route; a stream counts until its last byte',
    'method',
    'route',
    'status',
  )
  const accepted = counter('errand_interactions_accepted_total', 'Interactions that were accepted')
  const ended = counter(
    'errand_interactions_ended_total',
    'Interactions that ended, by final status and error code (`none` without an error)',
    'status',
    'code',
  )
  const duration = histogram(
    SECONDS,
    'errand_interaction_duration_seconds',
    'From acceptance to the end, by final status',
    'status',
  )
  const budgets = counter(
    'errand_budgets_passed_total',
    'Monthly budgets that reached an alert threshold (`alert`) or were used up (`exceeded`)',
    'state',
  )
  // From the start, so that the first one counts as an increase.
  for (const state of ['alert', 'exceeded']) budgets.inc({ state }, 0)
  const wait = histogram(
    SECONDS,
    'errand_interaction_wait_seconds',
    'From acceptance until a worker took the interaction for the first time',
  )
  const provisioning = histogram(
    SECONDS,
    'errand_interaction_provisioning_seconds',
    'From the first need of a sandbox until it was ready with the input files in it',
  )
  const settling = histogram(
    SECONDS,
    'errand_interaction_settling_seconds',
    'From the end of the work until output files were kept, sandboxes gone and the end written',
  )
  const takeovers = counter(
    'errand_interaction_takeovers_total',
    'Interactions that a worker took up after another one, or an earlier start of the server, had them',
  )
  const givenUp = counter('errand_interactions_given_up_total', 'Interactions that ended their workers too often')
  const leasesLost = counter('errand_leases_lost_total', 'Runs that were stopped here because the lease was lost')
  const broken = counter('errand_runs_broken_total', 'Runs that broke off by a bug or lost infrastructure')
  const model = histogram(
    SECONDS,
    'errand_model_call_duration_seconds',
    'Model calls, retries included, by outcome: `ok`, or how it failed',
    'model',
    'outcome',
  )
  const firstToken = histogram(
    SECONDS,
    'errand_model_first_token_seconds',
    'Until a model said its first words, thought or called for something',
    'model',
  )
  const retries = counter(
    'errand_model_retries_total',
    'Tries of model calls that failed and were tried again',
    'model',
  )
  const tokens = counter(
    'errand_model_tokens_total',
    'Tokens: `input` includes `cached_input` and `cache_write`, `output` includes `reasoning`',
    'model',
    'type',
  )
  const cost = counter('errand_model_cost_usd_total', 'US dollars spent on models that have a price here', 'model')
  const tool = histogram(
    SECONDS,
    'errand_tool_call_duration_seconds',
    'Tool calls by how they ended, waiting for a person included; `other`: tools of MCP servers and unknown names',
    'tool',
    'outcome',
  )
  const sandbox = histogram(
    SECONDS,
    'errand_sandbox_open_duration_seconds',
    'Sandboxes asked for, by what for and what came of it: `created`, `taken_up` or `failed`',
    'sandbox',
    'outcome',
  )
  const events = counter('errand_events_stored_total', 'Events of interactions that were written')
  const write = histogram(
    SHORT_SECONDS,
    'errand_database_write_duration_seconds',
    'From asking for a write to its being durable; `undone`: a condition did not hold, so nothing was written',
    'outcome',
  )
  const batch = histogram(
    WRITES,
    'errand_database_commit_writes',
    'Writes that went into one transaction together, on SQLite',
  )
  const webhook = histogram(
    SECONDS,
    'errand_webhook_attempt_duration_seconds',
    'Attempts to deliver a webhook, by its state afterwards',
    'state',
  )
  const contacts = counter(
    'errand_egress_contacts_total',
    'Hosts outside that runs turned to, by what for and what came of it',
    'kind',
    'outcome',
  )
  const streams = new Gauge({ name: 'errand_streams', help: 'Event streams that are open', registers })
  const streamsClosed = counter(
    'errand_streams_closed_total',
    'Event streams that ended: `whole`, `gone` (the reader left) or `slow` (dropped)',
    'cause',
  )

  return {
    http_answered: ({ method, route, status, ms }) =>
      http.observe({ method, route, status: String(status) }, seconds(ms)),
    accepted: () => accepted.inc(),
    claimed({ run, waitedMs, givenUp: isGivenUp }) {
      if (isGivenUp) givenUp.inc()
      else if (run.epoch > 1) takeovers.inc()
      else wait.observe(seconds(waitedMs))
    },
    provisioned: ({ ms }) => provisioning.observe(seconds(ms)),
    budget_passed: ({ percent }) => budgets.inc({ state: percent >= 100 ? 'exceeded' : 'alert' }),
    settled: ({ ms }) => settling.observe(seconds(ms)),
    ended({ status, code = 'none', usage }) {
      ended.inc({ status, code })
      duration.observe({ status }, seconds(usage.duration_ms))
    },
    left({ cause }) {
      if (cause === 'lost') leasesLost.inc()
      if (cause === 'broken') broken.inc()
    },
    model_called({ model: { name }, outcome, tokens: used, cost: spent, firstMs, ms }) {
      model.observe({ model: name, outcome: outcome.ok ? 'ok' : outcome.failure.kind }, seconds(ms))
      if (firstMs !== undefined) firstToken.observe({ model: name }, seconds(firstMs))
      if (spent) cost.inc({ model: name }, spent)
      for (const [type, number] of typesOf(used)) if (number > 0) tokens.inc({ model: name, type }, number)
    },
    model_retried: ({ model }) => retries.inc({ model }),
    tool_called: ({ name, ending, ms }) => tool.observe({ tool: toolLabel(name), outcome: ending }, seconds(ms)),
    sandbox_opened: ({ name, error, fresh, ms }) =>
      sandbox.observe(
        { sandbox: name.split('-')[0]!, outcome: error ? 'failed' : fresh ? 'created' : 'taken_up' },
        seconds(ms),
      ),
    events_stored: ({ count }) => events.inc(count),
    database_written: ({ outcome, ms }) => write.observe({ outcome }, seconds(ms)),
    database_committed: ({ writes }) => batch.observe(writes),
    webhook_sent: ({ state, ms }) => webhook.observe({ state }, seconds(ms)),
    contact_made: ({ kind, outcome }) => contacts.inc({ kind, outcome }),
    stream_opened: () => streams.inc(),
    stream_closed({ cause }) {
      streams.dec()
      streamsClosed.inc({ cause })
    },
  }
}

function seconds(ms: number): number {
  return ms / 1_000
}

function typesOf({ input, cachedInput, cacheWrite = 0, output, reasoning }: TokenCount): [string, number][] {
  return [
    ['input', input],
    ['cached_input', cachedInput],
    ['cache_write', cacheWrite],
    ['output', output],
    ['reasoning', reasoning],
  ]
}

/** MCP servers, which a caller may name, call their tools what they like: those are one label. */
function toolLabel(name: string): string {
  return isToolName(name) || name === 'skill' ? name : 'other'
}
