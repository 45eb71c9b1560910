import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { printable, type Terminal } from '../../src/cli/context.ts'
import { createTraceView } from '../../src/cli/trace-view.ts'
import type { RunEvent } from '../../src/domain/event.ts'

const usage = {
  input_tokens: 812,
  output_tokens: 120,
  total_tokens: 932,
  duration_ms: 1900,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  model_calls: 2,
  tool_calls: 1,
  sandbox_ms: 900,
}

const END: RunEvent = { type: 'completed', interactionId: 'int_1', status: 'completed', usage, stopReason: 'end_turn' }

const RUN: readonly RunEvent[] = [
  { type: 'stage', stage: 'working' },
  { type: 'reasoning_started', step: 1, content: 'I will add ' },
  { type: 'reasoning_delta', step: 1, text: 'it up.' },
  { type: 'tool_call', step: 2, name: 'code_execution', args: { code: 'print(1)\nprint(2)' } },
  { type: 'tool_output', step: 2, text: '1\n' },
  { type: 'tool_output', step: 2, text: '2\n' },
  { type: 'tool_result', step: 3, output: '1\n2\n[a note]', duration_ms: 120 },
  { type: 'partial_output', text: 'The sum ' },
  { type: 'partial_output', text: 'is 3.' },
  END,
]

function show(events: readonly RunEvent[], options: Partial<Terminal> = {}): string {
  const written: string[] = []
  const terminal = {
    write: (text: string) => void written.push(text),
    isTTY: false,
    color: false,
    columns: 80,
    ...options,
  }
  const view = createTraceView(terminal)
  for (const event of events) view.add(event)
  view.close()
  return written.join('')
}

describe('a run as it happens', () => {
  test('reads as a story: reasoning, the call with its code, its output once, the answer, what it used', () => {
    expect(show(RUN)).toBe(`  I will add it up.

● code_execution python
  │ print(1)
  │ print(2)
    1
    2
    [a note]
    0.12 s

The sum is 3.

completed in 1.90 s · 2 model calls · 1 tool call · 812 tokens in, 120 out
`)
  })

  test('color output differs from plain output in escape sequences only', () => {
    const colored = show(RUN, { color: true })
    expect(colored).not.toBe(show(RUN))
    expect(stripVTControlCharacters(colored)).toBe(show(RUN))
  })

  test('long code and long output are trimmed, and the trace says by how much', () => {
    const code = Array.from({ length: 100 }, (_unused, i) => `x${i}`).join('\n')
    const output = Array.from({ length: 48 }, (_unused, i) => `y${i}`).join('\n')
    const text = show([
      { type: 'tool_call', step: 1, name: 'code_execution', args: { code } },
      { type: 'tool_result', step: 2, output, duration_ms: 1 },
    ])
    expect(text).toContain('  │ x11\n  │ … 82 more lines\n  │ x94\n')
    expect(text).toContain('    y13\n    … 34 more lines\n')
    expect(text).not.toContain('x12')
    expect(text).not.toContain('y14')
  })

  test('a long result has the file with all of it, and a job its id and input', () => {
    const full = { path: '/tmp/errand/step-1-abcdef.txt', bytes: 5_000_000 }
    const text = show([
      { type: 'tool_call', step: 1, name: 'code_execution', args: { code: 'serve()', background: true } },
      { type: 'tool_result', step: 2, output: 'up', duration_ms: 1, full },
      { type: 'tool_call', step: 3, name: 'job', args: { id: 'job-1', input: 'stop' } },
    ])
    expect(text).toContain('● code_execution python {"background":true}\n  │ serve()\n')
    expect(text).toContain('    5,000,000 bytes in /tmp/errand/step-1-abcdef.txt\n')
    expect(text).toContain('● job {"id":"job-1","input":"stop"}\n')
  })

  test('a search is shown with its arguments, and edits of a file as removed and new lines', () => {
    const edits = [{ find: 'one\ntwo', replace: '2' }, { find: 'x', replace: '' }, 'no edit', null]
    const text = show([
      { type: 'tool_call', step: 1, name: 'find', args: { path: 'src', pattern: 'x+' } },
      { type: 'tool_result', step: 2, output: 'none', duration_ms: 1 },
      { type: 'tool_call', step: 3, name: 'file_write', args: { path: 'a.py', edits } },
    ])
    expect(text).toContain('● find src {"pattern":"x+"}\n')
    expect(text).toContain('● file_write a.py\n  │ - one\n  │ - two\n  │ + 2\n  │ - x\n')
  })

  test('live output beyond the trim is counted, not shown, and shown once', () => {
    const lines = Array.from({ length: 48 }, (_unused, i) => `y${i}\n`)
    const text = show([
      { type: 'tool_call', step: 1, name: 'code_execution', args: { code: 'x' } },
      ...lines.map((line): RunEvent => ({ type: 'tool_output', step: 1, text: line })),
      { type: 'tool_result', step: 2, output: lines.join(''), duration_ms: 1 },
    ])
    expect(text.match(/y13\n/g)).toHaveLength(1)
    expect(text).toContain('    … 34 more lines\n')
    expect(text).not.toContain('y14')
  })

  test('names the call of each output if calls run at the same time', () => {
    const text = show([
      { type: 'tool_call', step: 1, name: 'code_execution', args: { code: 'x' }, callId: 'a', batch: 1 },
      { type: 'tool_call', step: 2, name: 'web_search', args: { query: 'y' }, callId: 'b', batch: 1 },
      { type: 'tool_output', step: 1, text: 'one\n' },
      { type: 'tool_result', step: 3, output: 'found', duration_ms: 10, callId: 'b' },
      { type: 'tool_output', step: 1, text: 'two\n' },
      { type: 'tool_result', step: 4, output: 'one\ntwo', duration_ms: 20, callId: 'a' },
    ])
    expect(text).toContain(`● web_search {"query":"y"}
  ↳ code_execution (step 1)
    one
  ↳ web_search (step 2)
    found
    0.01 s
  ↳ code_execution (step 1)
    two
    0.02 s
`)
  })

  test('a failure says what it was, and so does a cap that was reached', () => {
    const text = show([
      { type: 'error', interactionId: 'i', code: 'model_error', message: 'No answer.', status: 500, retryable: true },
      { type: 'completed', interactionId: 'i', status: 'failed', usage },
    ])
    expect(text).toContain('✗ model_error: No answer.')
    expect(text).toContain('failed in 1.90 s')
    expect(show([{ ...END, stopReason: 'max_output_tokens' } as RunEvent])).toContain(
      'completed (stopped by max_output_tokens)',
    )
  })

  test('an event of a newer server is passed over', () => {
    const unknown = { type: 'heartbeat', beats: 3 } as unknown as RunEvent
    expect(show([RUN[1]!, unknown, RUN[2]!, END])).toBe(show([RUN[1]!, RUN[2]!, END]))
  })

  test('text of a run cannot move the cursor, change colors or reverse a line', () => {
    const hostile = '\x1b[2J\x1b]0;title\x07\x1b[31mred\x9b1m\rover\u202eevil\x08'
    const text = show([
      { type: 'reasoning_started', step: 1, content: hostile },
      { type: 'tool_call', step: 2, name: hostile, args: { code: hostile, path: hostile, more: hostile } },
      { type: 'tool_output', step: 2, text: `${hostile}\n` },
      { type: 'tool_result', step: 3, output: hostile, duration_ms: 1 },
      { type: 'warning', code: 'x', message: hostile },
      { type: 'partial_output', text: hostile },
      END,
    ])
    expect(text).toMatch(/^[\n\t\x20-\x7e\xa0-\u2029\u202f-\u2065\u206a-\uffff]*$/)
    expect(text).toContain('red')
  })

  test('whatever text comes, what is printable has no control character but tab and newline', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.integer({ min: 0, max: 0x2fff }).map((code) => String.fromCodePoint(code)) }),
        (text) => {
          expect(printable(text)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
        },
      ),
    )
  })
})
