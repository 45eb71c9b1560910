/** Checks how an interaction fails and which limits end it: model faults, the deadline, output tokens and cost. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider, type Reply } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, createGate, ended, outputOf, ROOMY, traceOf, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const CALL = { name: 'code_execution', args: { code: 'print(6 * 7)' } }

/** A PNG image of one red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', maxTries: 2, idleTimeoutS: 30 }
  const models = {
    'svc-3.5-flash': model,
    // US dollars per million tokens.
    priced: { ...model, price: { input: 0.3, output: 2.5 } },
    discounted: { ...model, price: { input: 1, output: 1, cachedInput: 0.1 } },
    dear: { ...model, price: { input: 1_000_000, output: 1_000_000 } },
    seeing: { ...model, vision: true },
    patient: { ...model, idleTimeoutS: 1 },
  }
  server = await startServer({ provider, config: { models, limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

function calls(marker: string): number {
  return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).length
}

async function run(instruction: string, fields: object = {}) {
  const answer = await server.post(PATH, { instruction, ...fields })
  expect(answer.status, answer.text).toBe(200)
  await checkEnded(server, answer.body.interactionId)
  return answer.body
}

it('a write that a server defect undoes ends the run as internal, and the log names the statement', async () => {
  const gate = createGate()
  const read = { toolCalls: [{ name: 'file_read', args: { path: 'dot.png' } }] }
  provider.when('[defect]', { ...read, hold: gate.opened }, { text: 'Done.' })
  const files = [{ name: 'dot.png', content: PNG, encoding: 'base64' }]
  const fields = { model: 'seeing', tools: ['file_read'], files, background: true, policy: { maxTurnDuration: 20 } }
  const { interactionId: id } = (await server.post(PATH, { instruction: '[defect]', ...fields })).body
  await until(() => calls('[defect]') === 1)
  // Simulates a defect: a row for step 2 exists before the run writes its own.
  await server.stored.query("insert into result_media (interaction_id, step, media) values (?, 2, '[]')", id)
  gate.open()
  await ended(server, id)
  const { interaction, events } = await checkEnded(server, id)
  expect(interaction).toMatchObject({ status: 'failed', error: { code: 'internal' } })
  expect(traceOf(events)).toMatchObject([{ type: 'tool_call' }])
  // The next model call may start before the write is refused.
  expect(calls('[defect]')).toBeLessThanOrEqual(2)
  expect(server.output()).toMatch(/violated a unique key: insert into \\?"result_media/)
})

describe('a model that fails', () => {
  const FAULTS: [string, Reply, string][] = [
    ['answers 400', { fault: 'status:400' }, ''],
    ['answers 401', { fault: 'status:401' }, ''],
    ['answers 500 again and again', { fault: 'status:500' }, ''],
    ['resets the connection', { fault: 'reset' }, ''],
    ['answers with a web page', { fault: 'html' }, ''],
    ['answers with an error event', { fault: 'error-event' }, ''],
    ['ends in garbage', { text: ['Half ', 'done'], fault: 'garbage' }, 'Half done'],
    ['ends too early', { text: ['Half ', 'done'], fault: 'truncate-after:1' }, 'Half '],
    ['resets the connection in the middle', { text: ['Half ', 'done'], fault: 'reset-after:1' }, 'Half '],
    ['reports an error in the middle', { text: ['Half ', 'done'], fault: 'error-event-after:1' }, 'Half '],
  ]

  it.each(FAULTS)(
    'and %s returns 500 model_error to a blocking caller, and GET returns the interaction',
    async (name, reply, output) => {
      const marker = `[blocking ${name}]`
      provider.when(marker, reply)
      const answer = await server.post(PATH, { instruction: marker })
      expect(answer.status).toBe(500)
      const { code, interactionId } = errorOf(answer)
      expect(code).toBe('model_error')
      const { interaction } = await checkEnded(server, interactionId!)
      expect(interaction).toMatchObject({ status: 'failed', output, executionTrace: [], files: [] })
      expect(interaction.error).toMatchObject({ code: 'model_error' })
    },
  )

  it.each(FAULTS)(
    'and %s sends an error event in a stream, then completed with status failed',
    async (name, reply, output) => {
      const marker = `[streamed ${name}]`
      provider.when(marker, reply)
      const stream = await server.stream(`${PATH}:stream`, { instruction: marker })
      expect(stream.status).toBe(200)
      const seen = await stream.all()
      const id = stream.headers.get('x-interaction-id')!
      expect(seen.at(-2)).toMatchObject({
        event: 'error',
        data: { interactionId: id, code: 'model_error', status: 500 },
      })
      expect(seen.at(-1)).toMatchObject({ event: 'completed', data: { interactionId: id, status: 'failed' } })
      expect(outputOf(seen)).toBe(output)
      await checkEnded(server, id, seen)
    },
  )

  it('after a tool call leaves trace, usage and files readable', async () => {
    const code = "open('outputs/early.txt', 'w').write('x'); print(42)"
    provider.when(
      '[late failure]',
      { toolCalls: [{ name: 'code_execution', args: { code } }], usage: { input: 7, output: 3 } },
      { fault: 'status:400' },
    )
    const answer = await server.post(PATH, { instruction: '[late failure]', tools: ['code_execution'] })
    expect(answer.status).toBe(500)
    const { interaction } = await checkEnded(server, errorOf(answer).interactionId!)
    expect(interaction.executionTrace).toMatchObject([{ type: 'tool_call' }, { type: 'tool_result', output: '42' }])
    expect(interaction.usage).toMatchObject({ input_tokens: 7, output_tokens: 3, total_tokens: 10, tool_calls: 1 })
    expect(interaction.files.map(({ name }: { name: string }) => name)).toEqual([expect.stringMatching(/early\.txt$/)])
    expect(await (await fetch(interaction.files[0].url)).text()).toBe('x')
  })

  it.each<[string, Reply]>([
    ['500', { fault: 'status:500' }],
    ['503', { fault: 'status:503' }],
    ['429', { fault: 'status:429', headers: { 'retry-after': '1' } }],
    ['a reset', { fault: 'reset' }],
    ['nothing for too long', { fault: 'stall' }],
  ])(
    'with %s before its first fragment is retried, and no output of the failed attempt is shown',
    async (name, reply) => {
      const marker = `[retried ${name}]`
      provider.when(marker, [reply, { text: 'Second try.' }])
      const body = await run(marker, { model: 'patient' })
      expect(body).toMatchObject({ status: 'completed', output: 'Second try.', executionTrace: [] })
      expect(calls(marker)).toBe(2)
    },
  )

  it.each<[string, Reply['fault']]>([
    ['ends too early', 'truncate-after:2'],
    ['is reset', 'reset-after:2'],
    ['reports an error', 'error-event-after:2'],
    ['falls silent', 'stall-after:2'],
  ])('and %s after part of the answer continues from there without repeating text', async (name, fault) => {
    const marker = `[continued after it ${name}]`
    const text = [
      'The first part of the answer, ',
      'and then ',
      'the second part, which is a little longer, ',
      'and the end.',
    ]
    provider.when(
      marker,
      { text, fault },
      { text: text.slice(2), fault: 'truncate-after:1' },
      // The model repeats the end of the text that it receives.
      { text: 'which is a little longer, and the end.' },
    )
    const body = await run(marker, { model: 'patient' })
    expect(body).toMatchObject({ status: 'completed', output: text.join(''), usage: { model_calls: 3 } })
    const { events } = await checkEnded(server, body.interactionId)
    expect(events.flatMap(({ event, data }) => (event === 'model_retried' ? [data.attempt] : []))).toEqual([1, 2])
    const { messages } = provider.requests.at(-1)!.body
    const asked = expect.stringContaining('Continue exactly there')
    expect(messages.slice(-4).map(({ role, content }) => [role, content])).toEqual([
      ['assistant', 'The first part of the answer, and then '],
      ['user', asked],
      ['assistant', 'the second part, which is a little longer, '],
      ['user', asked],
    ])
  })

  it('after reasoning only is called again', async () => {
    const reply: Reply = { reasoning: 'Hm.', text: 'Half', fault: 'truncate-after:1', usage: { input: 7, output: 3 } }
    provider.when('[only reasoning]', [reply, { text: 'Whole.' }])
    const body = await run('[only reasoning]')
    expect(body).toMatchObject({ status: 'completed', output: 'Whole.' })
    expect(calls('[only reasoning]')).toBe(2)
  })

  it('is complete if its continuation adds nothing', async () => {
    provider.when('[was complete]', { text: ['All of it.'], fault: 'truncate-after:1' }, { text: '[end of answer]' })
    expect(await run('[was complete]')).toMatchObject({ status: 'completed', output: 'All of it.' })
  })
})

describe('the deadline', () => {
  const policy = { maxTurnDuration: 1 }

  it('returns 504 deadline_exceeded to a blocking caller, and GET returns the output so far', async () => {
    provider.when('[late]', { text: ['Half ', 'done'], fault: 'stall-after:1' })
    const answer = await server.post(PATH, { instruction: '[late]', policy })
    expect(answer.status).toBe(504)
    const { code, interactionId } = errorOf(answer)
    expect(code).toBe('deadline_exceeded')
    const { interaction } = await checkEnded(server, interactionId!)
    expect(interaction).toMatchObject({ status: 'failed', output: 'Half ', error: { code: 'deadline_exceeded' } })
    // Timers and clocks round to whole milliseconds independently.
    expect(interaction.usage.duration_ms).toBeGreaterThanOrEqual(990)
    const call = provider.requests.find(({ body }) => JSON.stringify(body).includes('[late]'))!
    expect(await call.ended).toBe('closed')
  })

  it('sends an error event with status 504 in a stream, then completed', async () => {
    provider.when('[late stream]', { fault: 'stall' })
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[late stream]', policy })
    expect(stream.status).toBe(200)
    const seen = await stream.all()
    expect(seen.at(-2)).toMatchObject({ event: 'error', data: { code: 'deadline_exceeded', status: 504 } })
    expect(seen.at(-1)).toMatchObject({ event: 'completed', data: { status: 'failed' } })
    await checkEnded(server, stream.headers.get('x-interaction-id')!, seen)
  })

  it('also ends a background run', async () => {
    provider.when('[late background]', { fault: 'stall' })
    const { body } = await server.post(PATH, { instruction: '[late background]', policy, background: true })
    const interaction = await ended(server, body.interactionId)
    expect(interaction).toMatchObject({ status: 'failed', error: { code: 'deadline_exceeded' } })
    await checkEnded(server, body.interactionId)
  })
})

describe('the limit on output tokens', () => {
  it('completes the run with stopReason max_output_tokens if the provider enforces it', async () => {
    provider.when('[length]', { text: 'As far as I', finish: 'length', usage: { input: 10, output: 20 } })
    const body = await run('[length]', { policy: { maxOutputTokens: 20 } })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_output_tokens', output: 'As far as I' })
    const { body: sent } = provider.requests.find(({ body: any }) => JSON.stringify(any).includes('[length]'))!
    expect(sent.max_tokens ?? sent.max_completion_tokens).toBe(20)
  })

  it('is unchanged after the prompt of another run exceeded the context window', async () => {
    const errorMessage = "This model's maximum context length is 9 tokens. However, you requested 4096 tokens."
    provider.when('[too long]', { fault: 'status:400', errorMessage })
    provider.when('[short]', { text: 'Yes.' })
    const before = await run('[short] 1')
    expect(errorOf(await server.post(PATH, { instruction: '[too long]' })).code).toBe('model_error')
    const after = await run('[short] 2')
    expect([before.output, after.output]).toEqual(['Yes.', 'Yes.'])
    const sent = provider.requests.filter(({ body: any }) => JSON.stringify(any).includes('[short]'))
    expect(sent.map(({ body: { max_tokens } }) => max_tokens)).toEqual([expect.any(Number), sent[0]!.body.max_tokens])
  })

  it('is reported at the end of a stream', async () => {
    provider.when('[length stream]', { text: 'As far as I', finish: 'length', usage: { input: 10, output: 20 } })
    const fields = { instruction: '[length stream]', policy: { maxOutputTokens: 20 } }
    const seen = await (await server.stream(`${PATH}:stream`, fields)).all()
    expect(seen.at(-1)!.data).toMatchObject({ status: 'completed', stopReason: 'max_output_tokens' })
  })

  it('applies to all turns together: a later turn gets the remainder', async () => {
    provider.when(
      '[left over]',
      { toolCalls: [CALL], usage: { input: 10, output: 18 } },
      { text: 'Just', finish: 'length', usage: { input: 10, output: 12 } },
    )
    const body = await run('[left over]', { tools: ['code_execution'], policy: { maxOutputTokens: 30 } })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_output_tokens', output: 'Just' })
    expect(body.usage.output_tokens).toBe(30)
    const sent = provider.requests.filter(({ body: any }) => JSON.stringify(any).includes('[left over]'))
    expect(sent.map(({ body: any }) => any.max_tokens ?? any.max_completion_tokens)).toEqual([30, 12])
  })

  it('ends the run before another model call if a turn with tool calls used it up', async () => {
    provider.when('[used up]', { toolCalls: [CALL], usage: { input: 10, output: 30 } }, { text: 'Too much.' })
    const body = await run('[used up]', { tools: ['code_execution'], policy: { maxOutputTokens: 30 } })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_output_tokens', output: '' })
    expect(calls('[used up]')).toBe(1)
  })

  it.each<[string, Reply['usage']]>([
    ['reports it', { input: 10, output: 4000 }],
    ['reports no usage', false],
  ])('is enforced by the server if a provider ignores it and %s', async (name, usage) => {
    const marker = `[ignores ${name}]`
    provider.when(marker, { text: Array.from({ length: 4000 }, () => 'word '), usage })
    const body = await run(marker, { policy: { maxOutputTokens: 20 } })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_output_tokens' })
    // 20 tokens are about 80 characters; the model sent 20,000.
    expect(body.output.length).toBeLessThan(1000)
    expect(body.output.length).toBeGreaterThan(0)
  })

  it('counts reasoning', async () => {
    provider.when('[thinks]', { reasoning: Array.from({ length: 4000 }, () => 'hmm '), text: 'At last.' })
    const body = await run('[thinks]', { policy: { maxOutputTokens: 20 } })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_output_tokens', output: '' })
    expect(body.usage.output_tokens).toBeGreaterThan(0)
  })

  it('has no effect if it is not reached', async () => {
    provider.when('[within]', { text: 'Short.', usage: { input: 10, output: 19 } })
    expect(await run('[within]', { policy: { maxOutputTokens: 20 } })).toMatchObject({ stopReason: 'end_turn' })
  })
})

describe('usage', () => {
  it('sums all turns, including cached input and reasoning', async () => {
    provider.when(
      '[sums]',
      { toolCalls: [CALL], usage: { input: 100, output: 20, cachedInput: 40, reasoning: 5 } },
      { text: 'Done.', usage: { input: 200, output: 30, cachedInput: 60, reasoning: 7 } },
    )
    const { usage } = await run('[sums]', { tools: ['code_execution'] })
    expect(usage).toMatchObject({
      input_tokens: 300,
      output_tokens: 50,
      total_tokens: 350,
      cached_input_tokens: 100,
      reasoning_tokens: 12,
      model_calls: 2,
      tool_calls: 1,
    })
    expect(usage.sandbox_ms).toBeGreaterThan(0)
    expect(usage.duration_ms).toBeGreaterThanOrEqual(usage.sandbox_ms)
    expect(usage).not.toHaveProperty('cost')
  })

  it('is estimated if the provider reports none', async () => {
    provider.when('[untold]', { text: 'Some words for an answer.', usage: false })
    const { usage } = await run('[untold]')
    expect(usage.output_tokens).toBeGreaterThan(0)
  })

  it('includes the cost if the model has a price', async () => {
    provider.when('[cost]', { text: 'Done.', usage: { input: 1000, output: 200 } })
    // 1000 × 0.30 + 200 × 2.50 dollars, per million.
    const { usage } = await run('[cost]', { model: 'priced' })
    expect(usage.cost.currency).toBe('USD')
    expect(Number(usage.cost.amount)).toBeCloseTo(0.0008, 10)
  })

  it('counts cached input at its own price', async () => {
    provider.when('[cheaper]', { text: 'Done.', usage: { input: 1000, output: 100, cachedInput: 900 } })
    const { usage } = await run('[cheaper]', { model: 'discounted' })
    expect(Number(usage.cost.amount)).toBeCloseTo((100 + 90 + 100) / 1e6, 10)
  })

  it('counts nothing for a call that the provider refused', async () => {
    provider.when('[refused]', { fault: 'status:400' })
    const answer = await server.post(PATH, { instruction: '[refused]', model: 'dear' })
    const { interaction } = await checkEnded(server, errorOf(answer).interactionId!)
    expect(interaction.usage).toMatchObject({ input_tokens: 0, output_tokens: 0, total_tokens: 0 })
    expect(Number(interaction.usage.cost.amount)).toBe(0)
  })

  it('counts the output of a call that broke off', async () => {
    provider.when('[broke off]', { text: ['word '.repeat(100), 'more'], fault: 'reset-after:1' })
    const answer = await server.post(PATH, { instruction: '[broke off]', model: 'dear' })
    const { interaction } = await checkEnded(server, errorOf(answer).interactionId!)
    expect(interaction.usage.output_tokens).toBeGreaterThan(10)
    expect(Number(interaction.usage.cost.amount)).toBeGreaterThan(10)
  })

  it('includes the cost of a failed interaction', async () => {
    provider.when('[dear failure]', { toolCalls: [CALL], usage: { input: 1, output: 1 } }, { fault: 'status:400' })
    const fields = { instruction: '[dear failure]', model: 'dear', tools: ['code_execution'] }
    const answer = await server.post(PATH, fields)
    const { interaction } = await checkEnded(server, errorOf(answer).interactionId!)
    expect(Number(interaction.usage.cost.amount)).toBe(2)
  })
})

describe('policy.maxCost', () => {
  it('ends the run before another model call if a turn used it up', async () => {
    provider.when('[money]', { toolCalls: [CALL], usage: { input: 10, output: 5 } }, { text: 'Dear.' })
    const fields = { tools: ['code_execution'], model: 'dear', policy: { maxCost: 15 } }
    const body = await run('[money]', fields)
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_cost' })
    expect(body.resolved.policy.maxCost).toBe(15)
    expect(Number(body.usage.cost.amount)).toBe(15)
    expect(calls('[money]')).toBe(1)
  })

  it('cuts off a turn that would exceed it by far', async () => {
    provider.when('[spends]', { text: Array.from({ length: 4000 }, () => 'word '), usage: { input: 10, output: 4000 } })
    const body = await run('[spends]', { model: 'dear', policy: { maxCost: 40 } })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_cost' })
    expect(body.output.length).toBeLessThan(2000)
  })

  it('has no effect if it is not reached', async () => {
    provider.when('[cheap]', { text: 'Cheap.', usage: { input: 10, output: 5 } })
    expect(await run('[cheap]', { model: 'priced', policy: { maxCost: 1 } })).toMatchObject({ stopReason: 'end_turn' })
  })

  it('causes a warning or a 400 on a model without a price', async () => {
    provider.when('[priceless]', { text: 'Free.' })
    const answer = await server.post(PATH, { instruction: '[priceless]', policy: { maxCost: 1 } })
    if (answer.status === 400) return void expect(errorOf(answer).param).toBe('policy.maxCost')
    expect(answer.body.warnings).toMatchObject([{ param: 'policy.maxCost' }])
  })
})

describe('a run that never stops by itself', () => {
  it('ends at its deadline and reports its usage', async () => {
    provider.when('[forever]', () => ({ toolCalls: [{ name: 'nothing', args: {} }], usage: { input: 1, output: 1 } }))
    const fields = { instruction: '[forever]', tools: ['code_execution'], policy: { maxTurnDuration: 1 } }
    const answer = await server.post(PATH, fields)
    const id = answer.status === 200 ? answer.body.interactionId : errorOf(answer).interactionId
    const { interaction } = await checkEnded(server, id)
    expect(interaction.usage.model_calls).toBeGreaterThan(1)
  })
})
