/**
 * Checks an interaction from request to answer, inline and with an agent, for callers that wait, poll or disconnect.
 */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, createGate, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: ['All ', 'done.'] }))
  server = await startServer({ provider, config: { limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Holds the reply to an instruction with this marker after `holdAfter` fragments, until the gate opens. */
function held(marker: string, holdAfter = 0) {
  const gate = createGate()
  provider.when(marker, () => ({ text: ['All ', 'done.'], hold: gate.opened, holdAfter }))
  return gate
}

/** The request bodies that the provider received for the instruction with this marker. */
function asked(marker: string) {
  return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).map(({ body }) => body)
}

function toolNames(marker: string): string[] {
  return (asked(marker)[0]!.tools ?? []).map((tool) => tool.function.name)
}

function systemOf(marker: string): string {
  return asked(marker)[0]!
    .messages.filter(({ role }) => role === 'system')
    .map(({ content }) => content)
    .join('\n')
}

async function createAgent(config: object): Promise<string> {
  const { status, body } = await server.post('/v1beta/agents', config)
  expect(status).toBe(200)
  return body.id
}

async function listed(label: string) {
  const { body } = await server.get(`${PATH}?label.test=${label}`)
  return body.interactions
}

describe('a blocking call', () => {
  it('returns 200 with the whole interaction, its trace, usage and files', async () => {
    const code = "open('outputs/r.csv', 'w').write('a,b\\n'); print(6 * 7)"
    provider.when('[whole]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: ['It is ', '42.'] })
    const { status, headers, body } = await server.post(PATH, { instruction: '[whole]', tools: ['code_execution'] })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^application\/json\b/)
    expect(body).toMatchObject({
      status: 'completed',
      output: 'It is 42.',
      stopReason: 'end_turn',
      model: 'svc-3.5-flash',
      instruction: '[whole]',
      usage: { input_tokens: 20, output_tokens: 10, total_tokens: 30, model_calls: 2, tool_calls: 1 },
    })
    expect(body.executionTrace).toMatchObject([
      { step: 1, type: 'tool_call', name: 'code_execution', args: { code } },
      { step: 2, type: 'tool_result', output: '42' },
    ])
    expect(body.usage.sandbox_ms).toBeGreaterThan(0)
    expect(body.files).toHaveLength(1)
    expect(body.files[0].name).toMatch(/r\.csv$/)
    await checkEnded(server, body.interactionId)
  })

  it('returns file addresses that serve exactly the bytes without a key', async () => {
    const code =
      "import os; os.makedirs('outputs/deep', exist_ok=True); open('outputs/deep/ü 1.bin', 'wb').write(bytes(range(256)))"
    provider.when('[file]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Written.' })
    const { body } = await server.post(PATH, { instruction: '[file]', tools: ['code_execution'] })
    const [file] = body.files
    expect(file).toMatchObject({ size: 256 })
    expect(file.name).toMatch(/deep\/ü 1\.bin$/)
    const download = await fetch(file.url)
    expect(download.status).toBe(200)
    const bytes = Buffer.from(await download.arrayBuffer())
    expect(bytes).toEqual(Buffer.from(Array.from({ length: 256 }, (_, i) => i)))
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(file.sha256)
    const other = new URL(file.url)
    other.pathname = other.pathname.replace('deep', 'deer')
    expect((await fetch(other)).status).toBeGreaterThanOrEqual(400)
    await checkEnded(server, body.interactionId)
  })

  it('returns the same as a later GET, except the file addresses', async () => {
    const post = await server.post(PATH, { instruction: '[again]', labels: { test: 'again' } })
    const get = await server.get(`${PATH}/${post.body.interactionId}`)
    expect(get.body).toEqual(post.body)
    expect(get.body).toMatchObject({ files: [], executionTrace: [], labels: { test: 'again' } })
    expect(get.body.usage.sandbox_ms).toBe(0)
    await checkEnded(server, post.body.interactionId)
  })

  it('needs only an instruction, and uses the default model and policy', async () => {
    const { status, body } = await server.post(PATH, { instruction: '[bare]' })
    expect(status).toBe(200)
    expect(body.resolved).toMatchObject({
      model: 'svc-3.5-flash',
      tools: [],
      skills: [],
      mcp: [],
      network: 'disabled',
      policy: { maxTurnDuration: 600, maxOutputTokens: 65_536 },
    })
    expect(toolNames('[bare]')).toEqual([])
    await checkEnded(server, body.interactionId)
  })

  it('lets GET show status, stage and the output so far while the run works', async () => {
    const gate = held('[running]', 1)
    const { body } = await server.post(PATH, { instruction: '[running]', background: true })
    const seen = await until(async () => {
      const { body: now } = await server.get(`${PATH}/${body.interactionId}`)
      return now.output !== '' && now
    })
    expect(seen).toMatchObject({ status: 'running', stage: 'working', output: 'All ', files: [], executionTrace: [] })
    expect(seen.endTime ?? null).toBeNull()
    expect(seen.stopReason ?? null).toBeNull()
    gate.open()
    expect(await ended(server, body.interactionId)).toMatchObject({ status: 'completed', output: 'All done.' })
    await checkEnded(server, body.interactionId)
  })
})

describe('an agent', () => {
  it('provides its instruction, model, tools and policy to an interaction', async () => {
    const agentId = await createAgent({
      systemInstruction: 'Speak like a [pirate].',
      model: 'svc-3.1-pro',
      tools: ['code_execution', 'file_read'],
      policy: { maxTurnDuration: 77, maxOutputTokens: 4321 },
    })
    const { status, body } = await server.post(PATH, { instruction: '[lent]', agentId })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      agentId,
      agentVersion: 1,
      model: 'svc-3.1-pro',
      resolved: {
        systemInstruction: 'Speak like a [pirate].',
        model: 'svc-3.1-pro',
        tools: ['code_execution', 'file_read'],
        policy: { maxTurnDuration: 77, maxOutputTokens: 4321 },
      },
    })
    expect(toolNames('[lent]').sort()).toEqual(['code_execution', 'file_read', 'find', 'job'])
    expect(systemOf('[lent]')).toContain('Speak like a [pirate].')
    await checkEnded(server, body.interactionId)
  })

  it('is overridden by inline settings field by field, and in the policy key by key', async () => {
    const agentId = await createAgent({
      systemInstruction: 'Agent words.',
      model: 'svc-3.1-pro',
      tools: ['code_execution', 'file_read'],
      policy: { maxTurnDuration: 77, maxOutputTokens: 4321 },
    })
    const inline = { tools: ['file_write'], model: 'svc-3.5-flash', policy: { maxOutputTokens: 99 } }
    const { body } = await server.post(PATH, { instruction: '[inline]', agentId, ...inline })
    expect(body.model).toBe('svc-3.5-flash')
    expect(body.resolved).toMatchObject({
      systemInstruction: 'Agent words.',
      model: 'svc-3.5-flash',
      tools: ['file_write'],
      policy: { maxTurnDuration: 77, maxOutputTokens: 99 },
    })
    expect(toolNames('[inline]')).toEqual(['file_write'])
    expect(systemOf('[inline]')).toContain('Agent words.')
    await checkEnded(server, body.interactionId)
  })

  it('is used without its tools if the request has an empty list of tools', async () => {
    const agentId = await createAgent({ tools: ['code_execution'], model: 'svc-3.1-pro' })
    const { body } = await server.post(PATH, { instruction: '[cleared]', agentId, tools: [] })
    expect(body.resolved).toMatchObject({ tools: [], model: 'svc-3.1-pro' })
    expect(toolNames('[cleared]')).toEqual([])
    expect((await server.get(`/v1beta/agents/${agentId}`)).body.tools).toEqual(['code_execution'])
    await checkEnded(server, body.interactionId)
  })

  it('is used in its newest version unless agentVersion pins another', async () => {
    const agentId = await createAgent({ systemInstruction: 'First words.' })
    const patched = await server.request('PATCH', `/v1beta/agents/${agentId}`, { systemInstruction: 'Second words.' })
    expect(patched.body.version).toBe(2)
    const newest = await server.post(PATH, { instruction: '[newest]', agentId })
    expect(newest.body).toMatchObject({ agentId, agentVersion: 2, resolved: { systemInstruction: 'Second words.' } })
    const pinned = await server.post(PATH, { instruction: '[pinned]', agentId, agentVersion: 1 })
    expect(pinned.body).toMatchObject({ agentId, agentVersion: 1, resolved: { systemInstruction: 'First words.' } })
    expect(systemOf('[pinned]')).toContain('First words.')
    expect(systemOf('[pinned]')).not.toContain('Second words.')
    const missing = await server.post(PATH, { instruction: '[pinned]', agentId, agentVersion: 3 })
    expect([400, 404]).toContain(missing.status)
    errorOf(missing)
    await checkEnded(server, pinned.body.interactionId)
  })

  it('can be changed and deleted without effect on an interaction in progress', async () => {
    const agentId = await createAgent({ systemInstruction: 'Old words.', tools: ['code_execution'] })
    const gate = createGate()
    provider.when(
      '[keeps]',
      { toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }], hold: gate.opened },
      { text: 'Kept.' },
    )
    const { body } = await server.post(PATH, { instruction: '[keeps]', agentId, background: true })
    await server.request('PATCH', `/v1beta/agents/${agentId}`, { systemInstruction: 'New words.', tools: [] })
    expect((await server.request('DELETE', `/v1beta/agents/${agentId}`)).status).toBe(200)
    gate.open()
    const { interaction } = await ended(server, body.interactionId).then(() => checkEnded(server, body.interactionId))
    expect(interaction).toMatchObject({
      status: 'completed',
      agentId,
      agentVersion: 1,
      resolved: { systemInstruction: 'Old words.', tools: ['code_execution'] },
    })
    for (const { messages } of asked('[keeps]')) expect(JSON.stringify(messages)).not.toContain('New words.')
    expect(asked('[keeps]')).toHaveLength(2)
  })

  it.each([PATH, `${PATH}:stream`])(
    'returns 404 on %s if it is unknown, deleted, or of another project',
    async (path) => {
      const gone = await createAgent({})
      await server.request('DELETE', `/v1beta/agents/${gone}`)
      const foreign = await createAgent({})
      const otherKey = { 'x-svc-api-key': await server.createKey('neighbour') }
      const unknown = await server.post(path, { instruction: 'x', agentId: 'agt_0000000000000000000000' })
      const deleted = await server.post(path, { instruction: 'x', agentId: gone })
      const others = await server.post(path, { instruction: 'x', agentId: foreign }, otherKey)
      for (const answer of [unknown, deleted, others]) {
        expect(answer.status).toBe(404)
        expect(errorOf(answer).code).toBe('not_found')
      }
      const plain = (answer: typeof others, id: string) => errorOf(answer).message.replaceAll(id, 'ID')
      expect(plain(others, foreign)).toBe(plain(unknown, 'agt_0000000000000000000000'))
    },
  )
})

describe('a caller that does not wait', () => {
  it('gets an answer immediately with background: true, and finds the interaction at Location', async () => {
    const gate = held('[background]')
    const { status, headers, body } = await server.post(PATH, { instruction: '[background]', background: true })
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 'running', files: [], executionTrace: [], instruction: '[background]' })
    expect(['queued', 'provisioning', 'working']).toContain(body.stage)
    const location = headers.get('location')!
    expect(new URL(location, server.url).pathname).toBe(`${PATH}/${body.interactionId}`)
    expect((await server.get(location)).body).toMatchObject({ id: body.interactionId, status: 'running' })
    gate.open()
    await ended(server, body.interactionId)
    const { interaction } = await checkEnded(server, body.interactionId)
    expect(interaction).toMatchObject({ status: 'completed', output: 'All done.' })
  })

  it('gets the whole interaction with Prefer: wait=N if it ends in time', async () => {
    const { status, body } = await server.post(PATH, { instruction: '[in time]' }, { prefer: 'wait=60' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 'completed', output: 'All done.' })
    await checkEnded(server, body.interactionId)
  })

  it('gets a running interaction and its Location with Prefer: wait=N if it does not end in time', async () => {
    const gate = held('[too long]')
    const { status, headers, body } = await server.post(PATH, { instruction: '[too long]' }, { prefer: 'wait=1' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 'running' })
    expect(headers.get('location')).toContain(body.interactionId)
    gate.open()
    expect(await ended(server, body.interactionId)).toMatchObject({ status: 'completed' })
    await checkEnded(server, body.interactionId)
  })
})

describe('a caller that disconnects', () => {
  async function leave(label: string, fields: object): Promise<string> {
    const abort = new AbortController()
    const call = fetch(server.url + PATH, {
      method: 'POST',
      headers: { 'x-svc-api-key': server.key, 'content-type': 'application/json' },
      body: JSON.stringify({ instruction: `[${label}]`, labels: { test: label }, ...fields }),
      signal: abort.signal,
    })
    call.catch(() => {})
    await until(() => asked(`[${label}]`).length > 0)
    const [{ interactionId }] = await listed(label)
    abort.abort()
    return interactionId
  }

  it('does not stop its run', async () => {
    const gate = held('[left]', 1)
    const id = await leave('left', {})
    for (let i = 0; i < 5; i++) {
      expect((await server.get(`${PATH}/${id}`)).body.status).toBe('running')
    }
    gate.open()
    expect(await ended(server, id)).toMatchObject({ status: 'completed', output: 'All done.' })
    await checkEnded(server, id)
  })

  it('does not stop its streamed run', async () => {
    const gate = held('[left stream]', 1)
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[left stream]' })
    await stream.events.next()
    stream.drop()
    gate.open()
    const id = stream.headers.get('x-interaction-id')!
    expect(await ended(server, id)).toMatchObject({ status: 'completed', output: 'All done.' })
    await checkEnded(server, id)
  })

  it('stops its run and the model call if onDisconnect is "cancel"', async () => {
    held('[left cancel]', 1)
    const id = await leave('left cancel', { onDisconnect: 'cancel' })
    expect(await ended(server, id)).toMatchObject({ status: 'cancelled' })
    const call = provider.requests.find(({ body }) => JSON.stringify(body).includes('[left cancel]'))!
    expect(await call.ended).toBe('closed')
    await checkEnded(server, id)
  })

  it('stops its streamed run if onDisconnect is "cancel"', async () => {
    held('[left stream cancel]', 1)
    const stream = await server.stream(`${PATH}:stream`, {
      instruction: '[left stream cancel]',
      onDisconnect: 'cancel',
    })
    await stream.events.next()
    stream.drop()
    const id = stream.headers.get('x-interaction-id')!
    expect(await ended(server, id)).toMatchObject({ status: 'cancelled' })
    await checkEnded(server, id)
  })

  it('does not cancel the run if it already has its answer', async () => {
    const gate = held('[answered]')
    const fields = { instruction: '[answered]', onDisconnect: 'cancel', background: true }
    const { body, headers } = await server.post(PATH, fields, { connection: 'close' })
    expect(headers.get('location')).toContain(body.interactionId)
    await until(() => asked('[answered]').length > 0)
    gate.open()
    expect(await ended(server, body.interactionId)).toMatchObject({ status: 'completed' })
  })
})
