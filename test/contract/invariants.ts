/**
 * Invariants of every interaction that has ended, however it ended:
 *
 * - Event numbers are 1..n without a gap; `completed` appears once, and last.
 * - The joined `partial_output` fragments are `output`.
 * - The trace by GET is the fold of the stream; its steps are 1..n.
 * - `usage` is the same in GET and in the stream, and total = input + output.
 * - Status, error, stopReason and warnings by GET are those of the stream.
 *
 * The fold here is written independently of the one in src/.
 */
import { expect } from 'vitest'
import type { Server } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'

const EVENT_NAMES = [
  ...['reasoning_started', 'tool_call', 'tool_result', 'partial_output', 'completed'],
  ...['reasoning_delta', 'tool_output', 'stage', 'warning', 'error', 'approval_required', 'approval_decided'],
  'model_retried',
  'tools_changed',
  'notice',
  ...['model_retried', 'context_cleared', 'context_compacted'],
]
const STAGES = ['queued', 'provisioning', 'working', 'requires_action', 'settling']
const RFC3339_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/
const COUNTS = [
  ...['input_tokens', 'output_tokens', 'total_tokens', 'duration_ms'],
  ...['cached_input_tokens', 'cache_write_tokens', 'reasoning_tokens', 'model_calls', 'tool_calls', 'sandbox_ms'],
]

/** Limits so high that no test reaches a rate limit. */
export const ROOMY = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }

export interface TraceStep {
  readonly step: number
  readonly type: string
  readonly [field: string]: unknown
}

export interface Ended {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; an assertion says what must be there.
  readonly interaction: any
  readonly events: readonly WireEvent[]
}

/**
 * Asserts all invariants. `seen`: the events that a client received live from the first; they must equal the stored
 * ones.
 */
export async function checkEnded(
  server: Server,
  id: string,
  seen?: readonly WireEvent[],
  key = server.key,
): Promise<Ended> {
  const headers = { 'x-svc-api-key': key }
  const stream = await server.stream(`/v1beta/interactions/${id}:stream`, undefined, headers)
  expect(stream.status).toBe(200)
  const events = await stream.all()
  if (seen) expect(seen).toEqual(events)
  checkStream(events, id)
  const { status, body } = await server.get(`/v1beta/interactions/${id}`, headers)
  expect(status).toBe(200)
  checkInteraction(body, events, id)
  return { interaction: body, events }
}

/** Asserts the invariants of a whole stream by itself. */
function checkStream(events: readonly WireEvent[], id: string): void {
  expect(events.map((event) => event.id)).toEqual(events.map((_, i) => String(i + 1)))
  expect(events.filter(({ event }) => event === 'completed')).toHaveLength(1)
  const last = events.at(-1)!
  expect(last.event).toBe('completed')
  expect(last.data.interactionId).toBe(id)
  checkUsage(last.data.usage)
  for (const { event, data } of events) {
    expect(EVENT_NAMES).toContain(event)
    if (event === 'stage') expect(STAGES).toContain(data.stage)
    if (event === 'tool_call') expect(data.args).toBeTypeOf('object')
    if (event === 'tool_result') expect(data.duration_ms).toBeGreaterThanOrEqual(0)
    if (event === 'partial_output') expect(data.text).not.toBe('')
  }
  checkError(events, id)
  expect(traceOf(events).map(({ step }) => step)).toEqual(traceOf(events).map((_, i) => i + 1))
}

/** Asserts that a failed stream has exactly one `error` event, and any other has none. */
function checkError(events: readonly WireEvent[], id: string): void {
  const { status } = events.at(-1)!.data
  const errors = events.filter(({ event }) => event === 'error')
  expect(errors).toHaveLength(status === 'failed' ? 1 : 0)
  for (const { data } of errors) {
    expect(Object.keys(data).sort()).toEqual(['code', 'interactionId', 'message', 'retryable', 'status'])
    expect(data.interactionId).toBe(id)
    expect(data.code).toMatch(/^[a-z_]+$/)
    expect(data.message).toMatch(/\S/)
    expect(data.status).toBeGreaterThanOrEqual(400)
    expect(data.retryable).toBeTypeOf('boolean')
  }
}

// biome-ignore lint/suspicious/noExplicitAny: any answer may come here.
function checkInteraction(body: any, events: readonly WireEvent[], id: string): void {
  const end = events.at(-1)!.data
  expect(body.interactionId).toBe(id)
  expect(body.id).toBe(id)
  expect(body.status).toBe(end.status)
  expect(body.output).toBe(body.resolved.output === 'final' ? finalOf(events) : outputOf(events))
  expect(body.executionTrace.map(shown)).toEqual(traceOf(events))
  expect(body.usage).toEqual(end.usage)
  expect(body.stopReason).toEqual(end.stopReason)
  expect(body.warnings ?? []).toEqual(events.filter(({ event }) => event === 'warning').map(({ data }) => data))
  const error = events.find(({ event }) => event === 'error')?.data
  if (error) expect(body.error).toMatchObject({ code: error.code, message: error.message })
  else expect(body.error ?? null).toBeNull()
  checkFiles(body.files)
  expect(body.model).toMatch(/\S/)
  expect(body.instruction).toMatch(/\S/)
  expect(body.createTime).toMatch(RFC3339_UTC)
  expect(body.endTime).toMatch(RFC3339_UTC)
  expect(Date.parse(body.endTime)).toBeGreaterThanOrEqual(Date.parse(body.createTime))
}

// biome-ignore lint/suspicious/noExplicitAny: any answer may come here.
function checkFiles(files: any): void {
  expect(Array.isArray(files)).toBe(true)
  for (const file of files) {
    expect(file.name).toMatch(/\S/)
    expect(file.url).toMatch(/^https?:\/\//)
    expect(file.size).toBeGreaterThanOrEqual(0)
    expect(file.mimeType).toMatch(/^\w+\//)
    expect(file.sha256).toMatch(/^[0-9a-f]{64}$/)
  }
}

// biome-ignore lint/suspicious/noExplicitAny: any answer may come here.
function checkUsage(usage: any): void {
  expect(usage).toBeTypeOf('object')
  for (const count of COUNTS) {
    expect(Number.isInteger(usage[count]), `${count} in ${JSON.stringify(usage)}`).toBe(true)
    expect(usage[count]).toBeGreaterThanOrEqual(0)
  }
  expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens)
  expect(usage.reasoning_tokens).toBeLessThanOrEqual(usage.output_tokens)
  expect(usage.cached_input_tokens + usage.cache_write_tokens).toBeLessThanOrEqual(usage.input_tokens)
  if (usage.cost !== undefined) {
    expect(usage.cost.amount).toMatch(/^\d+(\.\d+)?$/)
    expect(usage.cost.currency).toMatch(/^[A-Z]{3}$/)
  }
}

/** The joined `partial_output` fragments. */
export function outputOf(events: readonly WireEvent[]): string {
  return textOf(events, 'partial_output')
}

/** The text of the last turn that has some. */
function finalOf(events: readonly WireEvent[]): string {
  const from = events.findLastIndex(({ event, data }) => event === 'partial_output' && data.newTurn)
  return from < 0 ? outputOf(events) : outputOf(events.slice(from)).replace(/^\n\n/, '')
}

/** The joined `text` of all events with this name. */
export function textOf(events: readonly WireEvent[], name: string): string {
  return events
    .filter(({ event }) => event === name)
    .map(({ data }) => data.text)
    .join('')
}

/** The trace as a fold of the stream's events. */
export function traceOf(events: readonly WireEvent[]): TraceStep[] {
  const steps: TraceStep[] = []
  for (const { event, data } of events) {
    if (event === 'reasoning_started') steps.push({ step: data.step, type: 'reasoning', content: data.content })
    if (event === 'tool_call')
      steps.push({ step: data.step, type: 'tool_call', name: data.name, args: data.args, ...viaOf(data) })
    if (event === 'tool_result')
      steps.push({ step: data.step, type: 'tool_result', output: data.output, ...viaOf(data) })
    if (event === 'reasoning_delta') {
      const at = steps.findIndex(({ step, type }) => step === data.step && type === 'reasoning')
      expect(at, `reasoning_delta of step ${data.step} after its reasoning_started`).toBeGreaterThanOrEqual(0)
      steps[at] = { ...steps[at]!, content: `${steps[at]!.content}${data.text}` }
    }
    if (event === 'tool_output') {
      expect(steps.find(({ step }) => step === data.step)?.type, 'tool_output of a running call').toBe('tool_call')
    }
  }
  return steps
}

/** Calls that code made name the call that ran the code. */
function viaOf({ via }: { readonly via?: number }): { readonly via?: number } {
  return via === undefined ? {} : { via }
}

/** A trace step of GET, with only the fields that the stream also has. */
function shown({ duration_ms: _, callId: __, ...step }: TraceStep): TraceStep {
  return step
}

/** Polls until `look` returns a value, for what another process does asynchronously. */
export async function until<T>(look: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Waits until the interaction is no longer running. Returns it as GET shows it. */
// biome-ignore lint/suspicious/noExplicitAny: as above.
export function ended(server: Server, id: string, key = server.key): Promise<any> {
  return until(async () => {
    const { body } = await server.get(`/v1beta/interactions/${id}`, { 'x-svc-api-key': key })
    return body.status !== 'running' && body
  })
}

export interface Gate {
  readonly opened: Promise<void>
  open(): void
}

/** Creates a gate that holds a scripted reply until it is opened. */
export function createGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: () => resolve() }
}
