/** Checks agents over HTTP: create, read, change, list and delete, with versions and ETags. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider, type RecordedRequest } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'

const RFC3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
const UNLIMITED = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }

let provider: FakeProvider
let server: Server
let otherKey: string
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: 'Done.' }))
  server = await startServer({ provider, config: { limits: UNLIMITED } })
  otherKey = await server.createKey('other')
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

// biome-ignore lint/suspicious/noExplicitAny: as in Answer.
async function create(fields: object = {}): Promise<any> {
  const answer = await server.post('/v1beta/agents', fields)
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

function patch(id: string, fields: object, headers?: Record<string, string>): Promise<Answer> {
  return server.request('PATCH', `/v1beta/agents/${id}`, fields, headers)
}

async function patched(id: string, fields: object) {
  const answer = await patch(id, fields)
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

describe('creating an agent', () => {
  it('fills in the default model and the fields that the server sets', async () => {
    const answer = await server.post('/v1beta/agents', {})
    expect(answer.status, answer.text).toBe(200)
    const { body } = answer
    expect(body).toMatchObject({ agentId: body.id, model: 'svc-3.5-flash', version: 1, mcp: [], labels: {} })
    expect(body.id).toMatch(/^agt_[0-9A-Za-z]{22}$/)
    expect(body.createTime).toMatch(RFC3339_UTC)
    expect(body.updateTime).toBe(body.createTime)
    expect(body.etag).toMatch(/^"[^"]+"$/)
    expect(body.warnings ?? []).toEqual([])
  })

  it('returns the agent’s address in Location and its etag in ETag', async () => {
    const { body, headers } = await server.post('/v1beta/agents', { displayName: 'Located' })
    const location = new URL(headers.get('location') ?? '', server.url)
    expect(location.pathname).toBe(`/v1beta/agents/${body.id}`)
    expect(headers.get('etag')).toBe(body.etag)
    expect((await server.get(location.pathname)).body).toEqual(body)
  })

  it('returns every field as it was sent', async () => {
    const fields = {
      displayName: 'Analyst',
      description: 'Reads tables. Ünïcode, too: 表 🦉',
      systemInstruction: 'Be exact.\nBe brief.',
      model: 'svc-3.1-pro',
      tools: ['code_execution', 'file_read', 'file_write'],
      policy: { maxTurnDuration: 120, maxOutputTokens: 4096 },
      labels: { team: 'data', 'cost.centre': '42', empty: '' },
    }
    const agent = await create(fields)
    expect(agent).toMatchObject(fields)
    expect(agent.policy).toEqual(fields.policy)
    expect(agent.labels).toEqual(fields.labels)
    expect((await server.get(`/v1beta/agents/${agent.id}`)).body).toEqual(agent)
  })

  it('accepts an id that the caller chose, once per project', async () => {
    const id = `slug-${'x'.repeat(58)}`
    expect(await create({ id })).toMatchObject({ id, agentId: id, version: 1 })
    const again = await server.post('/v1beta/agents', { id })
    expect(again.status).toBe(409)
    expect(errorOf(again)).toMatchObject({ code: 'conflict', retryable: false })
    expect((await server.get(`/v1beta/agents/${id}`)).body.version).toBe(1)
  })

  it('allows the same id in two projects and keeps the agents separate', async () => {
    await create({ id: 'shared-slug', displayName: 'mine' })
    const theirs = await server.post(
      '/v1beta/agents',
      { id: 'shared-slug', displayName: 'theirs' },
      { 'x-svc-api-key': otherKey },
    )
    expect(theirs.status, theirs.text).toBe(200)
    await server.request('DELETE', '/v1beta/agents/shared-slug', undefined, { 'x-svc-api-key': otherKey })
    expect((await server.get('/v1beta/agents/shared-slug')).body.displayName).toBe('mine')
  })

  it.each(['My-agent', '1st', '-a', 'a_b', 'a.b', 'a/b', 'a b', 'ä', '', `a${'b'.repeat(63)}`, 'a\n', 5, [], {}])(
    'refuses the id %j',
    async (id) => {
      const answer = await server.post('/v1beta/agents', { id })
      expect(answer.status, answer.text).toBe(400)
      expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param: 'id' })
    },
  )

  it('succeeds exactly once if twenty callers send the same id at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => server.post('/v1beta/agents', { id: 'wanted-by-all' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)])
  })

  it('treats a field that is null like a missing field', async () => {
    const agent = await create({ description: null, tools: null, policy: null, labels: null, model: null })
    expect(agent).not.toHaveProperty('description')
    expect(agent).toMatchObject({ model: 'svc-3.5-flash', labels: {} })
  })

  it('reports unknown fields as warnings and does not store them', async () => {
    const agent = await create({ displayName: 'x', colour: 'red', Model: 'svc-3.1-pro' })
    const params = agent.warnings.map(({ param }: { param: string }) => param)
    expect(params.sort()).toEqual(['Model', 'colour'])
    for (const warning of agent.warnings) expect(Object.keys(warning).sort()).toEqual(['code', 'message', 'param'])
    const read = (await server.get(`/v1beta/agents/${agent.id}`)).body
    expect(read).not.toHaveProperty('colour')
    expect(read.model).toBe('svc-3.5-flash')
  })

  it('accepts unknown tools but never offers them to the model', async () => {
    const { id, tools } = await create({ tools: ['code_execution', 'teleport'] })
    expect(tools).toContain('code_execution')
    const run = await server.post('/v1beta/interactions', { agentId: id, instruction: 'unknown tools [ut]' })
    expect(run.status, run.text).toBe(200)
    expect(run.body.warnings).toEqual([expect.objectContaining({ message: expect.stringContaining('teleport') })])
    expect(toolsOf(requestWith('[ut]'))).toEqual(['code_execution', 'job'])
  })

  it('reports unknown tools and skills as warnings', async () => {
    const agent = await create({ tools: ['code_execution', 'teleport'], skills: ['no-such-skill'] })
    const params = agent.warnings?.map(({ param }: { param: string }) => param)
    expect(params).toEqual(['tools[1]', 'skills[0]'])
  })

  it('stores or refuses MCP servers, and a run never ignores them silently', async () => {
    const mcp = [{ name: 'search', url: 'https://mcp.example.com/mcp', authentication: { type: 'none' } }]
    const { status, body, text } = await server.post('/v1beta/agents', { mcp })
    if (status !== 200) {
      expect(body.error.param, text).toMatch(/^mcp\b/)
      return
    }
    expect(body.mcp, text).toEqual(mcp)
    const run = await server.post('/v1beta/interactions', { agentId: body.id, instruction: 'hi' })
    if (run.status === 200) expect(JSON.stringify(run.body.warnings)).toMatch(/mcp/i)
    else expect(errorOf(run).param).toMatch(/^mcp\b/)
  })

  it.each([
    { type: 'bearer', token: 'inline-s3cret' },
    { type: 'headers', headers: { authorization: 'inline-s3cret' } },
    'inline-s3cret',
  ])('refuses an inline secret and does not repeat it: mcp authentication %j', async (authentication) => {
    const answer = await server.post('/v1beta/agents', {
      mcp: [{ name: 'm', url: 'https://mcp.example.com/mcp', authentication }],
    })
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer).param).toMatch(/^mcp\[0\]/)
    expect(answer.text).not.toContain('s3cret')
    expect(server.output()).not.toContain('s3cret')
  })

  it.each([
    [{ displayName: 5 }, 'displayName'],
    [{ description: [] }, 'description'],
    [{ systemInstruction: {} }, 'systemInstruction'],
    [{ systemInstruction: 'x'.repeat(100_001) }, 'systemInstruction'],
    [{ model: 7 }, 'model'],
    [{ tools: 'code_execution' }, 'tools'],
    [{ tools: ['file_read', 5] }, 'tools[1]'],
    [{ skills: [null] }, 'skills[0]'],
    [{ policy: 'fast' }, 'policy'],
    [{ policy: { maxTurnDuration: 0 } }, 'policy.maxTurnDuration'],
    [{ policy: { maxOutputTokens: 1_000_001 } }, 'policy.maxOutputTokens'],
    [{ labels: ['a'] }, 'labels'],
    [{ labels: { a: 1 } }, 'labels.a'],
    [{ mcp: {} }, 'mcp'],
  ])('refuses an invalid field: %j', async (fields, param) => {
    const answer = await server.post('/v1beta/agents', fields)
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param })
  })

  it('refuses an unknown model and lists the known ones', async () => {
    const answer = await server.post('/v1beta/agents', { model: 'gpt-nothing' })
    expect(answer.status, answer.text).toBe(400)
    const { param, message } = errorOf(answer)
    expect(param).toBe('model')
    expect(message).toContain('svc-3.5-flash')
    expect(message).toContain('svc-3.1-pro')
  })
})

describe('changing an agent', () => {
  it('changes only the fields that were sent, and sets a new version and etag', async () => {
    const before = await create({ displayName: 'A', description: 'B', tools: ['file_read'], labels: { a: '1' } })
    const { body, headers } = await patch(before.id, { systemInstruction: 'New.' })
    const { etag, updateTime, ...rest } = body
    const { etag: oldEtag, updateTime: oldUpdateTime, ...oldRest } = before
    expect(rest).toEqual({ ...oldRest, systemInstruction: 'New.', version: 2 })
    expect(etag).not.toBe(oldEtag)
    expect(headers.get('etag')).toBe(etag)
    expect(updateTime >= oldUpdateTime).toBe(true)
    const read = await server.get(`/v1beta/agents/${before.id}`)
    expect(read.body).toEqual(body)
    expect(read.headers.get('etag')).toBe(etag)
  })

  it('clears a field that is set to null', async () => {
    const { id } = await create({
      displayName: 'A',
      description: 'B',
      model: 'svc-3.1-pro',
      policy: { maxTurnDuration: 9 },
    })
    const after = await patched(id, { displayName: null, model: null, policy: null })
    expect(after).not.toHaveProperty('displayName')
    expect(after).toMatchObject({ description: 'B', model: 'svc-3.5-flash', version: 2 })
    expect(after.policy ?? {}).toEqual({})
  })

  it('replaces a whole list', async () => {
    const { id } = await create({ tools: ['file_read', 'file_write'] })
    expect((await patched(id, { tools: ['code_execution'] })).tools).toEqual(['code_execution'])
    expect((await patched(id, { tools: [] })).tools ?? []).toEqual([])
  })

  it('merges policy and labels key by key', async () => {
    const { id } = await create({ policy: { maxTurnDuration: 60, maxOutputTokens: 100 }, labels: { a: '1', b: '2' } })
    const after = await patched(id, { policy: { maxOutputTokens: 200 }, labels: { b: null, c: '3' } })
    expect(after.policy).toEqual({ maxTurnDuration: 60, maxOutputTokens: 200 })
    expect(after.labels).toEqual({ a: '1', c: '3' })
    expect((await patched(id, { policy: { maxTurnDuration: null } })).policy).toEqual({ maxOutputTokens: 200 })
    expect((await patched(id, { labels: null })).labels).toEqual({})
  })

  it.each<object>([
    { labels: { z: null } },
    { policy: { maxOutputTokens: null } },
    {},
    { displayName: 'Same' },
    { labels: { a: '1' } },
    { policy: {} },
    { description: null },
  ])('keeps version, etag and updateTime if nothing changes: %j', async (fields) => {
    const before = await create({ displayName: 'Same', labels: { a: '1' }, policy: { maxTurnDuration: 60 } })
    expect(await patched(before.id, fields)).toEqual(before)
  })

  it('returns 412 if If-Match does not have the current etag', async () => {
    const before = await create({ displayName: 'one' })
    const now = await patched(before.id, { displayName: 'two' })
    const stale = await patch(before.id, { displayName: 'three' }, { 'if-match': before.etag })
    expect(stale.status).toBe(412)
    expect(errorOf(stale)).toMatchObject({ code: 'precondition_failed', retryable: false })
    expect((await server.get(`/v1beta/agents/${before.id}`)).body).toEqual(now)
    const listed = await patch(before.id, { displayName: 'three' }, { 'if-match': `"other", ${before.etag}` })
    expect(listed.status).toBe(412)
    const fresh = await patch(before.id, { displayName: 'three' }, { 'if-match': now.etag })
    expect(fresh.status, fresh.text).toBe(200)
    expect(fresh.body).toMatchObject({ displayName: 'three', version: 3 })
  })

  it('accepts If-Match with * or with a list that contains the current etag', async () => {
    const { id, etag } = await create()
    expect((await patch(id, { displayName: 'a' }, { 'if-match': `"other", ${etag}` })).status).toBe(200)
    expect((await patch(id, { displayName: 'b' }, { 'if-match': '*' })).status).toBe(200)
  })

  it('lets exactly one of several concurrent changes with the same If-Match succeed', async () => {
    const { id, etag } = await create()
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => patch(id, { displayName: `writer ${i}` }, { 'if-match': etag })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(11).fill(412)])
    expect((await server.get(`/v1beta/agents/${id}`)).body.version).toBe(2)
  })

  it('applies all concurrent changes without If-Match and loses none', async () => {
    const { id } = await create()
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => patch(id, { labels: { [`k${i}`]: 'v' } })))
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
    const { version, labels } = (await server.get(`/v1beta/agents/${id}`)).body
    expect(Object.keys(labels)).toHaveLength(12)
    expect(version).toBe(13)
  })

  it('refuses an invalid change and leaves the agent as it was', async () => {
    const before = await create({ displayName: 'A', policy: { maxTurnDuration: 60 } })
    for (const [fields, param] of [
      [{ displayName: 'B', policy: { maxTurnDuration: 28_801 } }, 'policy.maxTurnDuration'],
      [{ displayName: 'B', tools: 'all' }, 'tools'],
      [{ displayName: 'B', model: 'nothing' }, 'model'],
      [{ labels: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v'])) }, 'labels'],
      [{ mcp: [{ name: 'm', url: 'https://m.example.com', authentication: { type: 'bearer', token: 't' } }] }, 'mcp'],
    ] as const) {
      const answer = await patch(before.id, fields)
      expect(answer.status, answer.text).toBe(400)
      expect(errorOf(answer).param).toMatch(new RegExp(`^${param}`))
    }
    expect((await server.get(`/v1beta/agents/${before.id}`)).body).toEqual(before)
  })

  it('refuses too many labels, counted after the merge', async () => {
    const labels = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, 'v']))
    const { id } = await create({ labels })
    const answer = await patch(id, { labels: { seventeenth: 'v' } })
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer).param).toMatch(/^labels/)
    expect((await patched(id, { labels: { k0: null, seventeenth: 'v' } })).labels).toHaveProperty('seventeenth')
  })

  it('reports unknown fields as warnings', async () => {
    const { id } = await create()
    const after = await patched(id, { displayName: 'x', shade: 'blue' })
    expect(after.warnings).toEqual([expect.objectContaining({ param: 'shade' })])
    expect(after.version).toBe(2)
  })

  it('ignores changes of fields that the server sets', async () => {
    const before = await create({ displayName: 'fixed' })
    await patch(before.id, { id: 'new-id', version: 9, createTime: '2000-01-01T00:00:00Z', etag: '"x"' })
    expect((await server.get(`/v1beta/agents/${before.id}`)).body).toEqual(before)
    expect((await server.get('/v1beta/agents/new-id')).status).toBe(404)
  })
})

describe('the versions of an agent', () => {
  it('can all be read, unchanged, and are listed newest first', async () => {
    const first = await create({ displayName: 'v1', labels: { a: '1' } })
    const second = await patched(first.id, { displayName: 'v2', labels: { a: null } })
    const third = await patched(first.id, { tools: ['file_read'] })
    const list = await server.get(`/v1beta/agents/${first.id}/versions`)
    expect(list.status, list.text).toBe(200)
    expect(list.body).toEqual({ versions: [third, second, first] })
    for (const [n, agent] of [first, second, third].entries()) {
      expect((await server.get(`/v1beta/agents/${first.id}/versions/${n + 1}`)).body).toEqual(agent)
    }
  })

  it('are paged without a gap or a duplicate', async () => {
    const { id } = await create()
    for (let i = 0; i < 6; i++) await patched(id, { displayName: `${i}` })
    const seen: number[] = []
    let token: string | undefined
    do {
      const { body, text } = await server.get(
        `/v1beta/agents/${id}/versions?pageSize=3${token ? `&pageToken=${encodeURIComponent(token)}` : ''}`,
      )
      expect(body.versions.length, text).toBeLessThanOrEqual(3)
      seen.push(...body.versions.map(({ version }: { version: number }) => version))
      token = body.nextPageToken
    } while (token)
    expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1])
  })

  it('return 404 if they do not exist', async () => {
    const { id } = await create()
    const answer = await server.get(`/v1beta/agents/${id}/versions/2`)
    expect(answer.status).toBe(404)
    expect(errorOf(answer).code).toBe('not_found')
    for (const n of ['0', '-1', '1.5', 'abc', '99999999999999999999', '1e0', '01x']) {
      const { status } = await server.get(`/v1beta/agents/${id}/versions/${n}`)
      expect([400, 404], n).toContain(status)
    }
    expect((await server.get('/v1beta/agents/agt_0000000000000000000000/versions')).status).toBe(404)
  })

  it('can be pinned by a run, even if later versions exist', async () => {
    const { id } = await create({ systemInstruction: 'You are version one.' })
    await patched(id, { systemInstruction: 'You are version two.' })
    const pinned = await server.post('/v1beta/interactions', {
      agentId: id,
      agentVersion: 1,
      instruction: 'pin [pin1]',
    })
    expect(pinned.status, pinned.text).toBe(200)
    expect(JSON.stringify(requestWith('[pin1]').body.messages)).toContain('You are version one.')
    expect((await server.get(`/v1beta/interactions/${pinned.body.interactionId}`)).body).toMatchObject({
      agentId: id,
      agentVersion: 1,
    })
    const newest = await server.post('/v1beta/interactions', { agentId: id, instruction: 'pin [pin2]' })
    expect((await server.get(`/v1beta/interactions/${newest.body.interactionId}`)).body.agentVersion).toBe(2)
    expect(JSON.stringify(requestWith('[pin2]').body.messages)).toContain('You are version two.')
    const unknown = await server.post('/v1beta/interactions', { agentId: id, agentVersion: 3, instruction: 'pin' })
    expect(unknown.status, unknown.text).toBe(404)
  })
})

describe('deleting an agent', () => {
  it('returns 200 and an empty object; every later request returns 404', async () => {
    const { id } = await create({ labels: { doomed: 'yes' } })
    await patched(id, { displayName: 'last words' })
    const deleted = await server.request('DELETE', `/v1beta/agents/${id}`)
    expect(deleted.status).toBe(200)
    expect(deleted.body).toEqual({})
    const answers = [
      await server.get(`/v1beta/agents/${id}`),
      await patch(id, { displayName: 'ghost' }),
      await server.request('DELETE', `/v1beta/agents/${id}`),
      await server.get(`/v1beta/agents/${id}/versions`),
      await server.get(`/v1beta/agents/${id}/versions/1`),
      await server.post('/v1beta/interactions', { agentId: id, instruction: 'hi' }),
      await server.post('/v1beta/interactions:stream', { agentId: id, instruction: 'hi' }),
      await server.post('/v1beta/interactions', { agentId: id, agentVersion: 1, instruction: 'hi', background: true }),
    ]
    for (const answer of answers) {
      expect(answer.status, answer.text).toBe(404)
      expect(errorOf(answer).code).toBe('not_found')
    }
    expect((await server.get('/v1beta/agents?label.doomed=yes')).body.agents).toEqual([])
  })

  it('does not affect a run in progress, which keeps the configuration it started with', async () => {
    const gate = Promise.withResolvers<void>()
    provider.when('[keeps]', { toolCalls: [{ name: 'no_such_tool', args: {} }], hold: gate.promise }, { text: 'Kept.' })
    const { id } = await create({ systemInstruction: 'The old rule.', tools: ['file_read'] })
    const begun = await server.post('/v1beta/interactions', {
      agentId: id,
      instruction: 'go [keeps]',
      background: true,
    })
    await until(() => provider.requests.some((request) => textOf(request).includes('[keeps]')))
    await patched(id, { systemInstruction: 'The new rule.', tools: ['file_write'], model: 'svc-3.1-pro' })
    expect((await server.request('DELETE', `/v1beta/agents/${id}`)).status).toBe(200)
    gate.resolve()
    const path = `/v1beta/interactions/${begun.body.interactionId}`
    await until(async () => (await server.get(path)).body.status !== 'running')
    expect((await server.get(path)).body).toMatchObject({
      status: 'completed',
      output: 'Kept.',
      agentId: id,
      agentVersion: 1,
      model: 'svc-3.5-flash',
    })
    const [, second] = provider.requests.filter((request) => textOf(request).includes('[keeps]'))
    expect(textOf(second!)).toContain('The old rule.')
    expect(textOf(second!)).not.toContain('The new rule.')
    expect(toolsOf(second!)).toEqual(['file_read', 'find'])
  })
})

describe('an agent that does not exist', () => {
  it.each([
    'agt_0000000000000000000000',
    'nobody',
    'NOBODY',
    '%00',
    '..%2F..',
    '%F0%9F%A6%89',
    'x'.repeat(2000),
    "'--",
  ])('returns 404, or a 4xx for a malformed id, and never 500: %s', async (id) => {
    for (const answer of [
      await server.get(`/v1beta/agents/${id}`),
      await patch(id, { displayName: 'x' }),
      await server.request('DELETE', `/v1beta/agents/${id}`),
    ]) {
      expect([400, 404, 414], answer.text).toContain(answer.status)
      errorOf(answer)
    }
  })
})

function textOf(request: RecordedRequest): string {
  return JSON.stringify(request.body.messages)
}

/** Returns the newest model request whose conversation contains the marker. */
function requestWith(marker: string): RecordedRequest {
  const found = provider.requests.findLast((request) => textOf(request).includes(marker))
  if (!found) throw new Error(`the model was never called with ${marker}`)
  return found
}

function toolsOf({ body }: RecordedRequest): string[] {
  return (body.tools ?? []).map((tool) => tool.function.name)
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10))
}
