/** One telemetry event of each kind, for tests that emit all of them. */
import type { RunSpec } from '../../src/domain/interaction.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'

const run = { id: 'int_1', projectId: 'prj_1', epoch: 1 }
const redact = (text: string) => text
const tokens = { input: 10, output: 5, cachedInput: 4, reasoning: 2 }
const model = {
  name: 'svc-3.5-flash',
  provider: 'openai-compatible',
  model: 'fake',
  source: 'errand.yaml',
  vision: false,
  documents: false,
  demo: false,
}
const usage = {
  input_tokens: 10,
  output_tokens: 5,
  total_tokens: 15,
  duration_ms: 7,
  cached_input_tokens: 4,
  cache_write_tokens: 0,
  reasoning_tokens: 2,
  model_calls: 1,
  tool_calls: 1,
  sandbox_ms: 3,
}
const outcome = { ok: true, message: { role: 'assistant', content: [] }, finish: 'stop', tokens } as const

export const EVERY_MOMENT: { readonly [T in TelemetryEvent['type']]: Extract<TelemetryEvent, { type: T }> } = {
  http_answered: { type: 'http_answered', requestId: 'req_1', method: 'GET', route: '/healthz', status: 200, ms: 1 },
  accepted: { type: 'accepted', interactionId: run.id, projectId: run.projectId },
  claimed: { type: 'claimed', run, spec: {} as RunSpec, waitedMs: 2, givenUp: false },
  provisioned: { type: 'provisioned', run, ms: 30 },
  sandbox_opened: { type: 'sandbox_opened', run, name: 'main', fresh: true, ms: 20 },
  model_called: {
    type: 'model_called',
    run,
    model,
    request: { messages: [], tools: [], maxOutputTokens: 100 },
    outcome,
    tokens,
    cost: 0.25,
    firstMs: 40,
    redact,
    ms: 50,
  },
  budget_passed: {
    type: 'budget_passed',
    projectId: run.projectId,
    month: '2026-11',
    percent: 80,
    spent: '8',
    limit: '10',
  },
  model_retried: { type: 'model_retried', model: model.name },
  tool_called: {
    type: 'tool_called',
    run,
    name: 'code_execution',
    callId: 'call_1',
    args: {},
    output: '1',
    ending: 'answered',
    redact,
    ms: 60,
  },
  settled: { type: 'settled', run, ms: 5 },
  ended: {
    type: 'ended',
    interactionId: run.id,
    run,
    status: 'completed',
    stopReason: 'end_turn',
    usage,
    webhook: false,
  },
  left: { type: 'left', run, cause: 'ended', ms: 70 },
  events_stored: { type: 'events_stored', count: 3 },
  database_written: { type: 'database_written', outcome: 'done', ms: 1 },
  database_committed: { type: 'database_committed', writes: 2 },
  contact_made: { type: 'contact_made', kind: 'file', outcome: 'dialled' },
  webhook_sent: { type: 'webhook_sent', state: 'delivered', ms: 8 },
  stream_opened: { type: 'stream_opened' },
  stream_closed: { type: 'stream_closed', cause: 'whole' },
}
