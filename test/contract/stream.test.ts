/** Checks the event stream: its format, how it is requested, and which text is answer and which is reasoning. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, type Stream, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { checkEnded, createGate, ended, outputOf, ROOMY, textOf, traceOf } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TOOLS = ['code_execution']

let provider: FakeProvider
let server: Server
/** The text of a stream with only a keep-alive comment, requested before the tests so that none waits for it. */
let quiet: Promise<string>
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: ['All ', 'done.'] }))
  server = await startServer({ provider, config: { limits: ROOMY } })
  quiet = readUntilComment()
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

function idOf(stream: Stream): string {
  return stream.headers.get('x-interaction-id')!
}

/** Runs an interaction to its end by stream and asserts the invariants. */
async function run(instruction: string, fields: object = {}) {
  const stream = await server.stream(`${PATH}:stream`, { instruction, ...fields })
  expect(stream.status).toBe(200)
  const seen = await stream.all()
  const { interaction } = await checkEnded(server, idOf(stream), seen)
  return { seen, interaction }
}

/** Reads until an event with this name arrives. */
async function readTo(stream: Stream, name: string): Promise<WireEvent[]> {
  const read: WireEvent[] = []
  for (;;) {
    const { value, done } = await stream.events.next()
    if (done) throw new Error(`The stream ended before ${name}.`)
    read.push(value)
    if (value.event === name) return read
  }
}

async function rest(stream: Stream): Promise<WireEvent[]> {
  const read: WireEvent[] = []
  for await (const event of stream.events) read.push(event)
  return read
}

async function readUntilComment(): Promise<string> {
  provider.when('[quiet]', { fault: 'stall' })
  const response = await fetch(`${server.url}${PATH}:stream`, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, 'content-type': 'application/json' },
    body: JSON.stringify({ instruction: '[quiet]' }),
  })
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (/^:.*$/m.test(text)) break
  }
  return text
}

describe('a stream', () => {
  it.each<[string, string, object, Record<string, string>]>([
    ['by path', `${PATH}:stream`, {}, {}],
    ['by a percent-encoded path', `${PATH}%3Astream`, {}, {}],
    ['by a path encoded in lower case', `${PATH}%3astream`, {}, {}],
    ['by stream: true', PATH, { stream: true }, {}],
    ['by stream: true, whatever is accepted', PATH, { stream: true }, { accept: '*/*' }],
    ['by path and flag', `${PATH}:stream`, { stream: true }, {}],
  ])('requested %s starts with the headers for cancel and resume', async (_, path, fields, headers) => {
    const stream = await server.stream(path, { instruction: 'hello', ...fields }, headers)
    expect(stream.status).toBe(200)
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream\b/)
    const cache = stream.headers.get('cache-control')!
    expect(cache).toContain('no-cache')
    expect(cache).toContain('no-transform')
    expect(stream.headers.get('x-accel-buffering')).toBe('no')
    expect(stream.headers.get('x-request-id')).toMatch(/\S/)
    expect(new URL(stream.headers.get('location')!, server.url).pathname).toBe(`${PATH}/${idOf(stream)}`)
    const seen = await stream.all()
    expect(outputOf(seen)).toBe('All done.')
    await checkEnded(server, idOf(stream), seen)
  })

  it('sends its headers before any output, and the interaction exists by then', async () => {
    const gate = createGate()
    provider.when('[headers first]', () => ({ text: 'Late.', hold: gate.opened }))
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[headers first]' })
    expect((await server.get(`${PATH}/${idOf(stream)}`)).body.status).toBe('running')
    gate.open()
    await checkEnded(server, idOf(stream), await stream.all())
  })

  it('has events with id, event and one data line of JSON, and no [DONE]', async () => {
    provider.when(
      '[raw]',
      { reasoning: 'hm', toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }] },
      { text: ['All ', 'done.'] },
    )
    const response = await fetch(`${server.url}${PATH}:stream`, {
      method: 'POST',
      headers: { 'x-svc-api-key': server.key, 'content-type': 'application/json' },
      body: JSON.stringify({ instruction: '[raw]', tools: TOOLS }),
    })
    const text = await response.text()
    expect(text.endsWith('\n\n')).toBe(true)
    expect(text).not.toContain('[DONE]')
    const blocks = text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'))
    for (const [i, block] of blocks.entries()) {
      const lines = block.split('\n').sort()
      expect(lines).toHaveLength(3)
      expect(lines[0]).toMatch(/^data: \{.*\}$/)
      expect(lines[1]).toMatch(/^event: [a-z_]+$/)
      expect(lines[2]).toBe(`id: ${i + 1}`)
      expect(JSON.parse(lines[0]!.slice('data: '.length))).toBeTypeOf('object')
    }
  })

  it.each<[string, object, number]>([
    ['a missing instruction', {}, 400],
    ['an unknown model', { instruction: 'x', model: 'svc-none' }, 400],
    ['an unknown agent', { instruction: 'x', agentId: 'agt_none' }, 404],
  ])('returns a plain HTTP error if it cannot start because of %s', async (_, body, status) => {
    for (const [path, fields] of [
      [`${PATH}:stream`, {}],
      [PATH, { stream: true }],
    ] as const) {
      const answer = await server.post(path, { ...body, ...fields }, { accept: 'text/event-stream' })
      expect(answer.status).toBe(status)
      errorOf(answer)
    }
  })

  it('delivers a fragment while the model is still writing', async () => {
    const gate = createGate()
    provider.when('[live]', () => ({ text: ['First ', 'second.'], hold: gate.opened, holdAfter: 1 }))
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[live]' })
    const first = await readTo(stream, 'partial_output')
    expect(first.at(-1)!.data).toEqual({ text: 'First ' })
    gate.open()
    const seen = [...first, ...(await rest(stream))]
    expect(outputOf(seen)).toBe('First second.')
    await checkEnded(server, idOf(stream), seen)
  })

  it('can be canceled and followed by percent-encoded paths too', async () => {
    provider.when('[encoded]', { fault: 'stall' })
    const { body } = await server.post(PATH, { instruction: '[encoded]', background: true })
    const following = await server.stream(`${PATH}/${body.interactionId}%3Astream`)
    expect(following.status).toBe(200)
    expect((await server.post(`${PATH}/${body.interactionId}%3Acancel`)).status).toBe(200)
    const seen = await following.all()
    expect(seen.at(-1)!.data.status).toBe('cancelled')
    await checkEnded(server, body.interactionId, seen)
  })
})

describe('text of a model that has tools', () => {
  const call = { name: 'code_execution', args: { code: 'print(6 * 7)' } }

  it.each([1, 239, 240])('is reasoning if a tool call follows after %i characters', async (length) => {
    const text = 'x'.repeat(length)
    provider.when(`[held ${length}]`, { text: [...text], toolCalls: [call] }, { text: 'It is 42.' })
    const { seen, interaction } = await run(`[held ${length}]`, { tools: TOOLS })
    expect(interaction.output).toBe('It is 42.')
    expect(traceOf(seen)).toMatchObject([
      { step: 1, type: 'reasoning', content: text },
      { step: 2, type: 'tool_call', name: 'code_execution' },
      { step: 3, type: 'tool_result', output: '42' },
    ])
  })

  it.each([241, 1000])(
    'is answer from %i characters on, even if a tool call follows, separated by a blank line',
    async (length) => {
      const text = 'x'.repeat(length)
      provider.when(`[released ${length}]`, { text: [...text], toolCalls: [call] }, { text: 'It is 42.' })
      const { seen, interaction } = await run(`[released ${length}]`, { tools: TOOLS })
      expect(interaction.output).toBe(`${text}\n\nIt is 42.`)
      expect(traceOf(seen).map(({ type }) => type)).toEqual(['tool_call', 'tool_result'])
    },
  )

  it('separates the answer text of turns by a blank line, without turns whose text became reasoning', async () => {
    const long = (letter: string) => letter.repeat(300)
    provider.when(
      '[three turns]',
      { text: long('a'), toolCalls: [call] },
      { text: 'short', toolCalls: [call] },
      { toolCalls: [call] },
      { text: long('b'), toolCalls: [call] },
      { text: 'End.' },
    )
    const { interaction } = await run('[three turns]', { tools: TOOLS })
    expect(interaction.output).toBe(`${long('a')}\n\n${long('b')}\n\nEnd.`)
    expect(interaction.executionTrace.filter(({ type }: { type: string }) => type === 'reasoning')).toMatchObject([
      { content: 'short' },
    ])
  })

  it('is streamed from the 241st character on while the model is still writing', async () => {
    const gate = createGate()
    const text = ['x'.repeat(240), 'y', 'z'.repeat(50)]
    provider.when('[flows]', () => ({ text, hold: gate.opened, holdAfter: 2 }))
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[flows]', tools: TOOLS })
    const first = await readTo(stream, 'partial_output')
    expect(outputOf(first)).toBe(`${'x'.repeat(240)}y`)
    gate.open()
    const seen = [...first, ...(await rest(stream))]
    expect(outputOf(seen)).toBe(text.join(''))
    await checkEnded(server, idOf(stream), seen)
  })

  it('is the answer if it has at most 240 characters and the turn ends without a call', async () => {
    provider.when('[short answer]', { text: ['It ', 'is.'] })
    const { interaction, seen } = await run('[short answer]', { tools: TOOLS })
    expect(interaction).toMatchObject({ output: 'It is.', executionTrace: [] })
    expect(outputOf(seen)).toBe('It is.')
  })

  it.each<[string, object]>([
    ['tools: []', { tools: [] }],
    ['no tools', {}],
    ['unknown tools alone', { tools: ['time_machine'] }],
  ])('is streamed immediately with %s', async (name, fields) => {
    const gate = createGate()
    provider.when(`[free ${name}]`, () => ({ text: ['x', 'y'], hold: gate.opened, holdAfter: 1 }))
    const stream = await server.stream(`${PATH}:stream`, { instruction: `[free ${name}]`, ...fields })
    const first = await readTo(stream, 'partial_output')
    expect(outputOf(first)).toBe('x')
    gate.open()
    await checkEnded(server, idOf(stream), [...first, ...(await rest(stream))])
  })
})

describe('reasoning of the provider', () => {
  it('starts a step with its first text, continues as deltas, and is complete in the trace', async () => {
    const gate = createGate()
    provider.when('[thinks]', () => ({
      reasoning: ['First ', 'then ', 'at last.'],
      text: 'Thought.',
      hold: gate.opened,
      holdAfter: 1,
    }))
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[thinks]' })
    const first = await readTo(stream, 'reasoning_started')
    expect(first.at(-1)!.data).toEqual({ step: 1, content: 'First ' })
    gate.open()
    const seen = [...first, ...(await rest(stream))]
    expect(textOf(seen, 'reasoning_delta')).toBe('then at last.')
    expect(seen.filter(({ event }) => event === 'reasoning_started')).toHaveLength(1)
    const { interaction } = await checkEnded(server, idOf(stream), seen)
    expect(interaction.executionTrace).toEqual([{ step: 1, type: 'reasoning', content: 'First then at last.' }])
    expect(interaction.output).toBe('Thought.')
  })

  it('is a separate step in each turn, in order with the calls', async () => {
    provider.when(
      '[thinks twice]',
      { reasoning: 'One.', toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }] },
      { reasoning: 'Two.', text: 'Done.' },
    )
    const { seen } = await run('[thinks twice]', { tools: TOOLS })
    expect(traceOf(seen)).toMatchObject([
      { step: 1, type: 'reasoning', content: 'One.' },
      { step: 2, type: 'tool_call' },
      { step: 3, type: 'tool_result' },
      { step: 4, type: 'reasoning', content: 'Two.' },
    ])
  })
})

describe('text with special characters', () => {
  const NASTY = [
    'emoji 👩‍👩‍👧‍👦 🦀 and 한국어, é, \u{1F1E9}\u{1F1EA}',
    'lines\n\n\r\n\rand\n',
    '\n\ndata: {"injected": true}\n\n',
    'event: completed\ndata: {"status":"completed"}\n\nid: 999\n\n: comment\n\n',
    '[DONE]',
    '\u2028\u2029\u0000\u001b[31m\ufeff',
    '"quotes" \\ backslash </script>',
  ]
  const ALL = NASTY.join('|')

  it.each([
    ['in one piece', [ALL]],
    ['character by character', [...ALL]],
  ])('reaches the caller unchanged, %s', async (name, text) => {
    provider.when(`[nasty ${name}]`, { text })
    const { seen, interaction } = await run(`[nasty ${name}]`)
    expect(outputOf(seen)).toBe(ALL)
    expect(interaction.output).toBe(ALL)
  })

  it('is complete even if the provider’s bytes are split within a character', async () => {
    const cut = (body: Buffer) =>
      Array.from({ length: Math.ceil(body.length / 7) }, (_, i) => body.subarray(i * 7, i * 7 + 7))
    provider.when('[cut]', { text: ['👩‍👩‍👧‍👦', 'ü🦀', '한'], cut })
    const { interaction } = await run('[cut]')
    expect(interaction.output).toBe('👩‍👩‍👧‍👦ü🦀한')
  })

  it('is not split within a character at the limit of 240', async () => {
    const text = '🦀'.repeat(400)
    provider.when('[crabs]', { text: [...text] })
    const { seen, interaction } = await run('[crabs]', { tools: TOOLS })
    expect(interaction.output).toBe(text)
    for (const { event, data } of seen) if (event === 'partial_output') expect(data.text.isWellFormed()).toBe(true)
  })

  it('is unchanged in tool arguments, tool output and reasoning', async () => {
    // Without the text that has NUL and escape characters: program output is shown as plain text.
    const said = NASTY.filter((text) => !text.includes('\u0000')).join('|')
    const code = `print(${JSON.stringify(said)}, end='')`
    provider.when(
      '[nasty tool]',
      { reasoning: said, toolCalls: [{ name: 'code_execution', args: { code } }] },
      { text: 'ok' },
    )
    const { interaction } = await run('[nasty tool]', { tools: TOOLS })
    const [reasoning, call, result] = interaction.executionTrace
    expect(reasoning.content).toBe(said)
    expect(call.args).toEqual({ code })
    // Output is shown as a terminal shows it: a carriage return at the start or end of a line is dropped.
    expect(result.output.trim()).toBe(said.replaceAll('\r', '').trim())
  })
})

describe('tool calls', () => {
  it('in one turn each have a call and a result, and the model gets each result with its id', async () => {
    const code = (n: number) => ({ name: 'code_execution', args: { code: `print(${n} * 11)` }, id: `id_${n}` })
    provider.when('[several]', { toolCalls: [code(1), code(2), code(3)], argPieces: 4 }, { text: 'Done.' })
    const { seen, interaction } = await run('[several]', { tools: TOOLS })
    const trace = traceOf(seen)
    expect(trace.filter(({ type }) => type === 'tool_call').map(({ args }) => args)).toEqual(
      [1, 2, 3].map((n) => code(n).args),
    )
    expect(trace.filter(({ type }) => type === 'tool_result').map(({ output }) => output)).toEqual(['11', '22', '33'])
    expect(interaction.usage).toMatchObject({ tool_calls: 3, model_calls: 2 })
    const messages = lastRequest('[several]').messages.filter(({ role }) => role === 'tool')
    expect(messages.map(({ tool_call_id, content }) => [tool_call_id, content])).toEqual([
      ['id_1', '11'],
      ['id_2', '22'],
      ['id_3', '33'],
    ])
  })

  it('keep the Python session of the interaction', async () => {
    const call = (code: string) => ({ toolCalls: [{ name: 'code_execution', args: { code } }] })
    provider.when('[session]', call('n = 20'), call('n += 1; print(n * 2)'), { text: 'Done.' })
    const { seen } = await run('[session]', { tools: TOOLS })
    expect(traceOf(seen).at(-1)!.output).toBe('42')
  })

  it('stream the output of a running step with the step number of the call', async () => {
    const code = "import time\nprint('early', flush=True)\nwhile True: time.sleep(1)"
    provider.when('[slow]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Done.' })
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[slow]', tools: TOOLS })
    const first = await readTo(stream, 'tool_output')
    expect(first.at(-1)!.data).toEqual({ step: 1, text: expect.stringContaining('early') })
    expect((await server.post(`${PATH}/${idOf(stream)}:cancel`)).status).toBe(200)
    await checkEnded(server, idOf(stream), [...first, ...(await rest(stream))])
  })

  it.each<[string, string, unknown]>([
    ['an unknown tool', 'time_machine', { year: 1900 }],
    ['a tool that is known but not enabled', 'file_write', { path: 'a', content: 'b' }],
    ['arguments that are no JSON', 'code_execution', '{"code": "print(1'],
    ['arguments that are no object', 'code_execution', '[1, 2]'],
    ['arguments without the required field', 'code_execution', { language: 'python' }],
    ['arguments of the wrong type', 'code_execution', { code: 7 }],
    ['a language that is none', 'code_execution', { code: 'x', language: 'cobol' }],
    ['empty arguments', 'code_execution', ''],
  ])('with %s return an error to the model, and the run continues', async (name, tool, args) => {
    const marker = `[wrong: ${name}]`
    provider.when(marker, { toolCalls: [{ name: tool, args }] }, { text: 'I see.' })
    const { seen, interaction } = await run(marker, { tools: TOOLS })
    expect(interaction).toMatchObject({ status: 'completed', output: 'I see.' })
    const [call, result] = traceOf(seen)
    expect(call).toMatchObject({ step: 1, type: 'tool_call', name: tool })
    expect(result).toMatchObject({ step: 2, type: 'tool_result' })
    expect(result!.output).toMatch(/\S/)
    const { messages } = lastRequest(marker)
    const told = messages.at(-1)!
    expect(told.role).toBe('tool')
    expect(told.content).toMatch(/\S/)
    // The provider only accepts a valid conversation, in which arguments are JSON objects.
    const sent = messages.at(-2)!.tool_calls![0]!
    expect(told.tool_call_id).toBe(sent.id)
    expect(JSON.parse(sent.function.arguments)).toBeTypeOf('object')
  })

  it('that fail inside the sandbox return the error as their result', async () => {
    provider.when('[raises]', { toolCalls: [{ name: 'code_execution', args: { code: '1 / 0' } }] }, { text: 'Oh.' })
    const { seen, interaction } = await run('[raises]', { tools: TOOLS })
    expect(interaction.status).toBe('completed')
    expect(traceOf(seen).at(-1)!.output).toContain('ZeroDivisionError')
  })

  function lastRequest(marker: string) {
    return provider.requests.findLast(({ body }) => JSON.stringify(body.messages).includes(marker))!.body
  }
})

describe('an idle stream', () => {
  it('is kept alive by comments, which are not events', async () => {
    const text = await quiet
    expect(text).toMatch(/(^|\n\n):.*\n\n$/)
    const { body } = await server.get(`${PATH}?status=running`)
    for (const { interactionId } of body.interactions) {
      await server.post(`${PATH}/${interactionId}:cancel`)
      await ended(server, interactionId)
      await checkEnded(server, interactionId)
    }
  })
})
