/** Checks the inputs of a request: labels, files, responseFormat, previousInteractionId and Idempotency-Key. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ChatMessage, type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, createGate, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: 'Done.' }))
  server = await startServer({ provider, config: { limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Every request body that the provider received whose conversation contains the marker. */
function asked(marker: string) {
  return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).map(({ body }) => body)
}

describe('labels', () => {
  it('are returned unchanged in every answer', async () => {
    const labels = { team: 'data', 'ключ 1': '', long: 'v'.repeat(512), ['k'.repeat(64)]: '🦀' }
    const { status, body } = await server.post(PATH, { instruction: 'labelled', labels })
    expect(status).toBe(200)
    expect(body.labels).toEqual(labels)
    const { interaction } = await checkEnded(server, body.interactionId)
    expect(interaction.labels).toEqual(labels)
  })
})

describe('inline files', () => {
  it('are in the working directory before the first model call, as text, base64 and data', async () => {
    const code = `
import os
for path in ['a.txt', 'in/b.bin', 'c.bin', 'in/deep er/d.txt']:
    print(path, open(path, 'rb').read())`
    provider.when('[files]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Read.' })
    const files = [
      { name: 'a.txt', content: 'grüß\n' },
      { name: 'in/b.bin', content: 'AAH/', encoding: 'base64' },
      { name: 'c.bin', data: '/w==', mimeType: 'application/octet-stream' },
      { name: 'in/deep er/d.txt', content: '', encoding: 'utf-8' },
    ]
    const { status, body } = await server.post(PATH, { instruction: '[files]', tools: ['code_execution'], files })
    expect(status).toBe(200)
    expect(body.executionTrace[1].output).toBe(
      [
        "a.txt b'gr\\xc3\\xbc\\xc3\\x9f\\n'",
        "in/b.bin b'\\x00\\x01\\xff'",
        "c.bin b'\\xff'",
        "in/deep er/d.txt b''",
      ].join('\n'),
    )
    expect(body.files).toEqual([])
    expect(body.warnings ?? []).toEqual([])
    await checkEnded(server, body.interactionId)
  })
})

describe('responseFormat', () => {
  const responseFormat = {
    type: 'object',
    properties: { n: { type: 'integer' } },
    required: ['n'],
    additionalProperties: false,
  }

  it('is satisfied by the output of a completed interaction', async () => {
    provider.when('[format]', { text: ['{"n":', ' 7}'] })
    const { status, body } = await server.post(PATH, { instruction: '[format]', responseFormat })
    expect(status).toBe(200)
    expect(JSON.parse(body.output)).toEqual({ n: 7 })
    await checkEnded(server, body.interactionId)
  })

  it.each([
    ['is no JSON', 'seven'],
    ['breaks the schema', '{"n": "seven"}'],
  ])('causes another model call if the first answer %s; the output is only the valid answer', async (name, wrong) => {
    const marker = `[format ${name}]`
    provider.when(marker, { text: wrong }, { text: '{"n": 7}' })
    const stream = await server.stream(`${PATH}:stream`, { instruction: marker, responseFormat })
    const seen = await stream.all()
    const { interaction } = await checkEnded(server, stream.headers.get('x-interaction-id')!, seen)
    expect(interaction.status).toBe('completed')
    expect(JSON.parse(interaction.output)).toEqual({ n: 7 })
    expect(interaction.usage).toMatchObject({ model_calls: 2, input_tokens: 20, output_tokens: 10 })
    expect(asked(marker)).toHaveLength(2)
  })

  it('fails the interaction after a bounded number of attempts if no answer satisfies it', async () => {
    provider.when('[never]', () => ({ text: 'no JSON at all' }))
    const answer = await server.post(PATH, { instruction: '[never]', responseFormat })
    expect(answer.status).toBe(500)
    const { interactionId, code } = errorOf(answer)
    expect(code).toBe('model_error')
    const { interaction } = await checkEnded(server, interactionId!)
    expect(interaction.status).toBe('failed')
    expect(asked('[never]').length).toBeGreaterThan(1)
    expect(asked('[never]').length).toBeLessThan(10)
  })

  it('is compiled once even if its parts are referenced often, and compile errors are not logged', async () => {
    const names = (count: number) => Array.from({ length: count }, (_, i) => `p${i}`)
    const part = { properties: Object.fromEntries(names(300).map((name) => [name, { type: 'string', minLength: 1 }])) }
    const format = { $defs: { part }, allOf: names(1_500).map(() => ({ $ref: '#/$defs/part' })) }
    const request = { instruction: '[again and again]', background: true }
    expect((await server.post(PATH, { ...request, responseFormat: format })).status).toBe(200)
    const wide = { allOf: names(1_500).map((name) => ({ properties: { [name]: {} } })), unevaluatedProperties: false }
    await server.post(PATH, { ...request, responseFormat: wide })
    expect(server.output()).not.toContain('Error compiling schema')
  })

  it('works together with tools', async () => {
    const call = { name: 'code_execution', args: { code: 'print(7)' } }
    provider.when('[format tools]', { text: 'I look.', toolCalls: [call] }, { text: '{"n": 7}' })
    const fields = { instruction: '[format tools]', tools: ['code_execution'], responseFormat }
    const { body } = await server.post(PATH, fields)
    expect(body.status).toBe('completed')
    expect(JSON.parse(body.output)).toEqual({ n: 7 })
    await checkEnded(server, body.interactionId)
  })
})

describe('previousInteractionId', () => {
  it('continues the conversation with its tool calls, in a new sandbox', async () => {
    const first = {
      name: 'code_execution',
      args: { code: "open('kept.txt', 'w').write('x'); secret = 'tuna'; print('swordfish')" },
    }
    provider.when('[first]', { toolCalls: [first] }, { text: 'The word is swordfish.' })
    const one = await server.post(PATH, { instruction: '[first] find the word', tools: ['code_execution'] })
    expect(one.body.status).toBe('completed')

    const look = "import os; print(os.path.exists('kept.txt'), 'secret' in globals())"
    provider.when('[second]', { toolCalls: [{ name: 'code_execution', args: { code: look } }] }, { text: 'Fresh.' })
    const fields = { instruction: '[second] and now?', previousInteractionId: one.body.interactionId }
    const two = await server.post(PATH, { ...fields, tools: ['code_execution'] })
    expect(two.status).toBe(200)
    expect(two.body.executionTrace[1].output).toBe('False False')
    const story = withoutSystem(asked('[second]')[0]!.messages)
    expect(story.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
    expect(JSON.stringify(story[0])).toContain('[first] find the word')
    expect(story[1]!.tool_calls![0]!.function.name).toBe('code_execution')
    expect(JSON.parse(story[1]!.tool_calls![0]!.function.arguments)).toEqual(first.args)
    expect(story[2]).toMatchObject({ tool_call_id: story[1]!.tool_calls![0]!.id })
    expect(JSON.stringify(story[2])).toContain('swordfish')
    expect(JSON.stringify(story[3])).toContain('The word is swordfish.')
    // The trace and output cover only this interaction.
    expect(two.body.output).toBe('Fresh.')
    expect(two.body.executionTrace).toHaveLength(2)

    provider.when('[third]', { text: 'Third.' })
    const three = await server.post(PATH, { instruction: '[third]', previousInteractionId: two.body.interactionId })
    expect(three.status).toBe(200)
    const roles = withoutSystem(asked('[third]')[0]!.messages).map(({ role }) => role)
    expect(roles).toEqual([
      ...['user', 'assistant', 'tool', 'assistant'],
      ...['user', 'assistant', 'tool', 'assistant'],
      'user',
    ])
    for (const { body } of [one, two, three]) await checkEnded(server, body.interactionId)
  })

  it('returns 409 for a running interaction and 404 for one that does not exist', async () => {
    const gate = createGate()
    provider.when('[previous runs]', () => ({ text: 'Late.', hold: gate.opened }))
    const { body } = await server.post(PATH, { instruction: '[previous runs]', background: true })
    const early = await server.post(PATH, { instruction: 'x', previousInteractionId: body.interactionId })
    expect(early.status).toBe(409)
    expect(errorOf(early).code).toBe('conflict')
    gate.open()
    await ended(server, body.interactionId)
    expect((await server.post(PATH, { instruction: 'x', previousInteractionId: body.interactionId })).status).toBe(200)
    for (const path of [PATH, `${PATH}:stream`]) {
      const none = await server.post(path, { instruction: 'x', previousInteractionId: 'int_0000000000000000000000' })
      expect(none.status).toBe(404)
      expect(errorOf(none).code).toBe('not_found')
    }
  })

  it('produces a valid conversation after a canceled interaction', async () => {
    // The interaction is canceled between a tool call and its result; a call without a result would make the
    // conversation invalid.
    const call = { name: 'code_execution', args: { code: 'import time; time.sleep(1000)' } }
    provider.when('[cut off]', { toolCalls: [call] }, { text: 'Never.' })
    const fields = { instruction: '[cut off]', tools: ['code_execution'], background: true }
    const id = (await server.post(PATH, fields)).body.interactionId
    await until(async () => (await server.get(`${PATH}/${id}`)).body.executionTrace.length > 0)
    expect((await server.post(`${PATH}/${id}:cancel`)).status).toBe(200)
    const next = await server.post(PATH, { instruction: '[after cut]', previousInteractionId: id })
    if (next.status !== 200) return void expect([400, 404, 409]).toContain(next.status)
    const messages = withoutSystem(asked('[after cut]')[0]!.messages)
    expect(JSON.stringify(messages[0])).toContain('[cut off]')
    const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls.map((made) => made.id))
    const results = messages.flatMap(({ tool_call_id }) => tool_call_id ?? [])
    expect(results).toEqual(calls)
  })

  function withoutSystem(messages: readonly ChatMessage[]) {
    return messages.filter(({ role }) => role !== 'system')
  }
})

describe('an Idempotency-Key', () => {
  it('returns the same interaction for the same request', async () => {
    const headers = { 'idempotency-key': 'order-1' }
    const body = { instruction: '[once]', labels: { a: 'b' } }
    const first = await server.post(PATH, body, headers)
    const second = await server.post(PATH, body, headers)
    expect(first.status).toBe(200)
    expect(second.status).toBe(200)
    expect(second.body).toEqual(first.body)
    expect(asked('[once]')).toHaveLength(1)
  })

  it('returns 422 with another body', async () => {
    const headers = { 'idempotency-key': 'order-2' }
    await server.post(PATH, { instruction: 'this' }, headers)
    for (const path of [PATH, `${PATH}:stream`]) {
      const other = await server.post(path, { instruction: 'that' }, headers)
      expect(other.status).toBe(422)
      expect(errorOf(other).code).toBe('idempotency_mismatch')
    }
  })

  it('joins a request that is still in flight, blocking or streamed', async () => {
    const gate = createGate()
    provider.when('[joined]', () => ({ text: ['One ', 'answer.'], hold: gate.opened, holdAfter: 1 }))
    const headers = { 'idempotency-key': 'order-3' }
    const body = { instruction: '[joined]' }
    const first = server.post(PATH, body, headers)
    await until(() => asked('[joined]').length > 0)
    const second = server.post(PATH, body, headers)
    gate.open()
    const [one, two] = await Promise.all([first, second])
    expect(one.status).toBe(200)
    expect(two.body).toEqual(one.body)
    expect(asked('[joined]')).toHaveLength(1)
    await checkEnded(server, one.body.interactionId)
  })

  it('returns the same stream from its first event for a repeated streamed request', async () => {
    const headers = { 'idempotency-key': 'order-4' }
    const body = { instruction: '[same stream]' }
    const first = await server.stream(`${PATH}:stream`, body, headers)
    const seen = await first.all()
    const second = await server.stream(`${PATH}:stream`, body, headers)
    expect(second.headers.get('x-interaction-id')).toBe(first.headers.get('x-interaction-id'))
    expect(await second.all()).toEqual(seen)
    expect(asked('[same stream]')).toHaveLength(1)
  })

  it('creates one interaction for 20 concurrent requests', async () => {
    const headers = { 'idempotency-key': 'order-20' }
    const calls = Array.from({ length: 20 }, () => server.post(PATH, { instruction: '[twenty]' }, headers))
    const answers = await Promise.all(calls)
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(new Set(answers.map(({ body }) => body.interactionId)).size).toBe(1)
    expect(asked('[twenty]')).toHaveLength(1)
    await checkEnded(server, answers[0]!.body.interactionId)
  })

  it('is separate in each project', async () => {
    const headers = { 'idempotency-key': 'order-5' }
    const mine = await server.post(PATH, { instruction: 'mine' }, headers)
    const theirs = await server.post(
      PATH,
      { instruction: 'theirs' },
      { ...headers, 'x-svc-api-key': await server.createKey('idempotent') },
    )
    expect(theirs.status).toBe(200)
    expect(theirs.body.interactionId).not.toBe(mine.body.interactionId)
  })

  it('can be used again after a request that was refused', async () => {
    const headers = { 'idempotency-key': 'order-6' }
    expect((await server.post(PATH, { instruction: '' }, headers)).status).toBe(400)
    expect((await server.post(PATH, { instruction: 'x', agentId: 'agt_none' }, headers)).status).toBe(404)
    expect((await server.post(PATH, { instruction: 'good now' }, headers)).status).toBe(200)
  })

  it('starts one new run if the first failed with a retryable error', async () => {
    let isDown = true
    provider.when('[down]', () => (isDown ? { fault: 'status:503' } : { text: 'Up again.' }))
    const [path, headers] = [`${PATH}?view=full`, { 'idempotency-key': 'order-8' }]
    const first = await server.post(path, { instruction: '[down]' }, headers)
    const failed = errorOf(first)
    expect(failed).toMatchObject({ code: 'model_error', retryable: true })
    isDown = false
    const other = await server.post(path, { instruction: 'Something else.' }, headers)
    expect(errorOf(other)).toMatchObject({ status: 422, code: 'idempotency_mismatch' })

    const second = await server.post(path, { instruction: '[down]' }, headers)
    expect(second.body).toMatchObject({ status: 'completed', output: 'Up again.', retryOf: failed.interactionId })
    expect(second.headers.get('idempotent-replayed')).toBeNull()
    const third = await server.post(path, { instruction: '[down]' }, headers)
    expect(third.body).toEqual({ ...second.body, files: third.body.files })
    expect(third.headers.get('idempotent-replayed')).toBe('true')
    const { interaction } = await checkEnded(server, failed.interactionId!)
    expect(interaction).toMatchObject({ status: 'failed', error: { code: 'model_error', retryable: true } })
    expect(interaction.retryOf).toBeUndefined()
  })

  it('returns the same failure again', async () => {
    provider.when('[fails once]', { fault: 'status:400' })
    const headers = { 'idempotency-key': 'order-7' }
    const first = await server.post(PATH, { instruction: '[fails once]' }, headers)
    const second = await server.post(PATH, { instruction: '[fails once]' }, headers)
    expect(first.status).toBe(500)
    expect(second.status).toBe(500)
    expect(errorOf(second)).toEqual(errorOf(first))
    expect(asked('[fails once]')).toHaveLength(1)
  })

  it.each([
    ['far too long', 'k'.repeat(2000)],
    ['empty', ''],
  ])('returns 400 if it is %s', async (_, key) => {
    const answer = await server.post(PATH, { instruction: 'x' }, { 'idempotency-key': key })
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request' })
    expect(errorOf(answer).param?.toLowerCase()).toBe('idempotency-key')
  })
})
