/**
 * Checks the limits of a project: calls per minute, and interactions that run or wait at once. Uses real servers with
 * small limits.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'

let provider: FakeProvider
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when('', () => ({ text: 'Done.' }))
})
afterAll(() => provider?.close())

/**
 * Parses the rate limit headers. RateLimit names the policy that counted this call; RateLimit-Policy lists all
 * policies.
 */
function counted({ headers }: { headers: Headers }) {
  const number = (text: string | null | undefined, pattern: RegExp) =>
    Number(pattern.exec(text ?? '')?.[1] ?? Number.NaN)
  const state = headers.get('ratelimit')
  const name = /^"[^"]+"/.exec(state ?? '')?.[0] ?? 'none'
  const policy = headers
    .get('ratelimit-policy')
    ?.split(/\s*,\s*/)
    .find((policy) => policy.startsWith(`${name};`))
  return {
    quota: number(policy, /;\s*q=(\d+)/),
    window: number(policy, /;\s*w=(\d+)/),
    remaining: number(state, /;\s*r=(\d+)/),
    xLimit: number(headers.get('x-ratelimit-limit'), /^(\d+)$/),
    xRemaining: number(headers.get('x-ratelimit-remaining'), /^(\d+)$/),
    xReset: number(headers.get('x-ratelimit-reset'), /^(\d+)$/),
  }
}

function expectLimited(answer: Answer): void {
  expect(answer.status, answer.text).toBe(429)
  expect(errorOf(answer)).toMatchObject({ code: 'rate_limited', retryable: true })
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(60)
  expect(counted(answer)).toMatchObject({ remaining: 0, xRemaining: 0 })
}

describe('the rate limit of a project', () => {
  const CREATIONS = 3
  const CALLS = 12

  let server: Server
  let fresh: () => Promise<{ 'x-svc-api-key': string }>
  beforeAll(async () => {
    server = await startServer({
      provider,
      config: { limits: { interactionsPerMinute: CREATIONS, callsPerMinute: CALLS } },
    })
    // Each test uses a new project, because waiting for the next minute would take too long.
    let count = 0
    fresh = async () => ({ 'x-svc-api-key': await server.createKey(`project-${count++}`) })
  })
  afterAll(() => server?.stop())

  const run = (headers: Record<string, string>, fields: object = {}) =>
    server.post('/v1beta/interactions', { instruction: 'hi', ...fields }, headers)

  async function statuses(calls: Promise<Answer>[]): Promise<number[]> {
    return (await Promise.all(calls)).map(({ status }) => status).sort()
  }

  it('accepts exactly the allowed number of new interactions, in sequence or concurrently', async () => {
    const headers = await fresh()
    const first = await run(headers)
    expect(first.status, first.text).toBe(200)
    const kinds = [{}, { background: true }, { stream: true }, {}, { background: true }, {}]
    const rest = await Promise.all(kinds.map((fields) => run(headers, fields)))
    expect(rest.filter(({ status }) => status === 200)).toHaveLength(CREATIONS - 1)
    for (const answer of rest.filter(({ status }) => status !== 200)) expectLimited(answer)
    expectLimited(await server.post('/v1beta/interactions:stream', { instruction: 'hi' }, headers))
    const { body } = await server.get('/v1beta/interactions', headers)
    expect(body.interactions).toHaveLength(CREATIONS)
  })

  it('accepts exactly the allowed number of other calls, and counts new interactions separately', async () => {
    const headers = await fresh()
    const made = await statuses(Array.from({ length: CREATIONS + 1 }, () => run(headers)))
    expect(made).toEqual([...Array(CREATIONS).fill(200), 429])
    const used = await server.get('/v1beta/agents', headers)
    expect(used.status, used.text).toBe(200)
    // The headers state how many calls are left, however the refused creation was counted.
    const left = counted(used).remaining
    const read = await statuses(Array.from({ length: left + 4 }, () => server.get('/v1beta/agents', headers)))
    expect(read).toEqual([...Array(left).fill(200), ...Array(4).fill(429)])
  })

  it('allows new interactions when the limit of the other calls is used up', async () => {
    const headers = await fresh()
    const read = await statuses(Array.from({ length: CALLS + 3 }, () => server.get('/v1beta/agents', headers)))
    expect(read).toEqual([...Array(CALLS).fill(200), ...Array(3).fill(429)])
    expectLimited(await server.post('/v1beta/agents', {}, headers))
    expectLimited(await server.request('DELETE', '/v1beta/agents/nobody', undefined, headers))
    expect((await run(headers)).status).toBe(200)
  })

  it('counts refused requests for an interaction as calls and not as new interactions', async () => {
    const headers = await fresh()
    const bad = [
      () => run(headers, { instruction: '' }),
      () => run(headers, { agentId: 'nobody' }),
      () => server.post('/v1beta/interactions', '{', headers),
      () => server.post('/v1beta/interactions', 'text', { ...headers, 'content-type': 'text/plain' }),
      () => run({ ...headers, 'api-revision': 'never' }),
      () => server.post('/v1beta/interactions:stream', {}, headers),
    ]
    for (const call of bad) expect([400, 404, 415]).toContain((await call()).status)
    const read = await server.get('/v1beta/agents', headers)
    expect(counted(read).remaining).toBe(CALLS - bad.length - 1)
    const made = await statuses(Array.from({ length: CREATIONS + 1 }, () => run(headers)))
    expect(made).toEqual([...Array(CREATIONS).fill(200), 429])
  })

  it('is shared by the keys of a project and separate for each project', async () => {
    const project = 'shared'
    const [one, two] = [await server.createKey(project), await server.createKey(project)]
    const other = await fresh()
    const made = await statuses([one, two, one, two, one].map((key) => run({ 'x-svc-api-key': key })))
    expect(made).toEqual([...Array(CREATIONS).fill(200), 429, 429])
    expect((await run(other)).status).toBe(200)
  })

  it('is reported in the headers of every answer, and decreases by one with each', async () => {
    const headers = await fresh()
    const made = await run(headers)
    expect(counted(made)).toMatchObject({ quota: CREATIONS, remaining: CREATIONS - 1, xLimit: CREATIONS })
    const stream = await server.stream('/v1beta/interactions:stream', { instruction: 'hi' }, headers)
    expect(counted(stream)).toMatchObject({ remaining: CREATIONS - 2, xRemaining: CREATIONS - 2 })
    await stream.all()
    let left = CALLS
    for (const call of [
      () => server.get('/v1beta/agents', headers),
      () => server.post('/v1beta/agents', {}, headers),
      () => server.get('/v1beta/agents/nobody', headers),
      () => server.get('/v1beta/agents?order=up', headers),
      () => server.get(`/v1beta/interactions/${made.body.interactionId}`, headers),
      () => server.get('/v1beta/agents', { ...headers, 'api-revision': 'never' }),
      () => server.request('PATCH', '/v1beta/agents/nobody', '{', headers),
      () => server.request('PATCH', '/v1beta/agents/nobody', 'x', { ...headers, 'content-type': 'text/plain' }),
    ]) {
      const answer = await call()
      left--
      const seen = counted(answer)
      expect(seen, answer.text).toMatchObject({
        quota: CALLS,
        window: 60,
        remaining: left,
        xLimit: CALLS,
        xRemaining: left,
      })
      expect(seen.xReset, answer.text).toBeGreaterThanOrEqual(0)
    }
  })

  it('is reported in the headers of unknown paths and methods too', async () => {
    const headers = await fresh()
    for (const answer of [
      await server.get('/v1beta/nothing', headers),
      await server.request('PUT', '/v1beta/agents', {}, headers),
    ]) {
      expect([404, 405]).toContain(answer.status)
      expect(counted(answer)).toMatchObject({ xLimit: CALLS, quota: CALLS })
    }
  })

  it('is checked after the key and the account’s switch, and before the revision and everything else', async () => {
    const headers = await fresh()
    await statuses(Array.from({ length: CALLS }, () => server.get('/v1beta/agents', headers)))
    expectLimited(await server.get('/v1beta/agents?order=up', { ...headers, 'api-revision': 'never' }))
    const text = { ...headers, 'content-type': 'text/plain', 'api-revision': 'never' }
    expectLimited(await server.post('/v1beta/agents', 'x', text))
    expect((await server.get('/v1beta/agents', { 'x-svc-api-key': 'wrong' })).status).toBe(401)
    await server.errand(['settings', 'set', 'experimental.managedAgents', 'off'])
    try {
      expect((await server.get('/v1beta/agents', headers)).status).toBe(403)
    } finally {
      await server.errand(['settings', 'set', 'experimental.managedAgents', 'on'])
    }
    expectLimited(await server.get('/v1beta/agents', headers))
  })
})

describe('the operator’s limits', () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer({
      provider,
      config: {
        limits: {
          runningPerProject: 1,
          queuedPerProject: 1,
          queueWaitS: 3600,
          maxTurnDuration: { default: 50, max: 70 },
          maxOutputTokens: { default: 500, max: 900 },
        },
      },
    })
  })
  afterAll(() => server?.stop())

  const begin = (instruction: string, headers?: Record<string, string>) =>
    server.post('/v1beta/interactions', { instruction, background: true }, headers)
  const read = async (id: string, headers?: Record<string, string>) =>
    (await server.get(`/v1beta/interactions/${id}`, headers)).body
  const callsWith = (marker: string) =>
    provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).length

  async function ended(id: string) {
    for (;;) {
      const interaction = await read(id)
      if (interaction.status !== 'running') return interaction
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async function held(marker: string) {
    const gate = Promise.withResolvers<void>()
    const before = provider.requests.length
    provider.when(marker, { text: 'Released.', hold: gate.promise })
    const { body, status, text } = await begin(`go ${marker}`)
    expect(status, text).toBe(200)
    await provider.received(before + 1)
    return { id: body.interactionId as string, release: gate.resolve }
  }

  it('allow one running and one queued interaction, and refuse a third with 503', async () => {
    const otherKey = { 'x-svc-api-key': await server.createKey('elsewhere') }
    const first = await held('[first]')
    const second = await begin('go [second]')
    expect(second.body).toMatchObject({ status: 'running' })
    expect(await read(second.body.interactionId)).toMatchObject({ status: 'running', stage: 'queued' })
    for (const fields of [{}, { background: true }, { stream: true }]) {
      const third = await server.post('/v1beta/interactions', { instruction: 'go [third]', ...fields })
      expect(third.status, third.text).toBe(503)
      expect(errorOf(third)).toMatchObject({ code: 'unavailable', retryable: true })
    }
    // Another project does not have to wait.
    const elsewhere = await server.post('/v1beta/interactions', { instruction: 'elsewhere' }, otherKey)
    expect(elsewhere.status, elsewhere.text).toBe(200)
    expect(callsWith('[second]')).toBe(0)
    first.release()
    expect(await ended(first.id)).toMatchObject({ status: 'completed', output: 'Released.' })
    expect(await ended(second.body.interactionId)).toMatchObject({ status: 'completed', output: 'Done.' })
    expect(callsWith('[third]')).toBe(0)
  })

  it('free a place in the queue if the waiting interaction is canceled', async () => {
    const first = await held('[holder]')
    const queued = (await begin('go [gives up]')).body.interactionId
    const cancelled = await server.post(`/v1beta/interactions/${queued}:cancel`)
    expect(cancelled.status, cancelled.text).toBe(200)
    const next = await begin('go [takes its place]')
    expect(next.status, next.text).toBe(200)
    first.release()
    expect((await ended(next.body.interactionId)).status).toBe('completed')
    expect((await read(queued)).status).toBe('cancelled')
    expect(callsWith('[gives up]')).toBe(0)
    await ended(first.id)
  })

  it('free a running slot if the interaction is canceled', async () => {
    const first = await held('[cancelled]')
    const next = (await begin('go [after]')).body.interactionId
    expect((await server.post(`/v1beta/interactions/${first.id}:cancel`)).status).toBe(200)
    expect((await ended(next)).status).toBe('completed')
    first.release()
    expect((await read(first.id)).status).toBe('cancelled')
  })

  it('set the default and the range of the policy, for interactions and agents', async () => {
    const { body } = await server.post('/v1beta/interactions', { instruction: 'hi' })
    expect((await read(body.interactionId)).resolved.policy).toMatchObject({
      maxTurnDuration: 50,
      maxOutputTokens: 500,
    })
    for (const [name, over, max] of [
      ['maxTurnDuration', 71, '70'],
      ['maxOutputTokens', 901, '900'],
    ] as const) {
      for (const path of ['/v1beta/interactions', '/v1beta/agents']) {
        const answer = await server.post(path, { instruction: 'hi', policy: { [name]: over } })
        expect(answer.status, answer.text).toBe(400)
        expect(errorOf(answer)).toMatchObject({ param: `policy.${name}`, message: expect.stringContaining(max) })
      }
    }
  })
})

describe('a burst of requests', () => {
  it.each([
    { runningPerProject: 2, queuedPerProject: 0 },
    { runningPerProject: 2, queuedPerProject: 3 },
  ])('is accepted only up to the number that may run and wait: %j', async (limits) => {
    const server = await startServer({ provider, config: { limits: { ...limits, queueWaitS: 3600 } } })
    try {
      const room = limits.runningPerProject + limits.queuedPerProject
      const gate = Promise.withResolvers<void>()
      const before = provider.requests.length
      provider.when('[burst]', { text: 'Released.', hold: gate.promise })
      const answers = await Promise.all(
        Array.from({ length: room + 5 }, () =>
          server.post('/v1beta/interactions', { instruction: 'go [burst]', background: true }),
        ),
      )
      const admitted = answers.filter(({ status }) => status === 200)
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        expect(answer.status, answer.text).toBe(503)
        expect(errorOf(answer).code).toBe('unavailable')
      }
      expect(admitted).toHaveLength(room)
      expect((await server.get('/v1beta/interactions')).body.interactions).toHaveLength(room)
      await provider.received(before + limits.runningPerProject)
      expect(provider.requests).toHaveLength(before + limits.runningPerProject)
      gate.resolve()
      for (const { body } of admitted) {
        const events = await (await server.stream(`/v1beta/interactions/${body.interactionId}:stream`)).all()
        expect(events.at(-1)!.data.status).toBe('completed')
      }
    } finally {
      await server.stop()
    }
  })
})

describe('the wait in the queue', () => {
  it('ends with 503 after queueWaitS, and the failed interaction can still be read', async () => {
    const limits = { runningPerProject: 1, queuedPerProject: 5, queueWaitS: 1 }
    const server = await startServer({ provider, config: { limits } })
    try {
      const gate = Promise.withResolvers<void>()
      const before = provider.requests.length
      provider.when('[blocks]', { text: 'Released.', hold: gate.promise })
      const first = await server.post('/v1beta/interactions', { instruction: 'go [blocks]', background: true })
      await provider.received(before + 1)
      const [waited, streamed] = await Promise.all([
        server.post('/v1beta/interactions', { instruction: 'go [waits]' }),
        server.stream('/v1beta/interactions:stream', { instruction: 'go [waits]' }).then((stream) => stream.all()),
      ])
      expect(waited.status, waited.text).toBe(503)
      const error = errorOf(waited)
      expect(error).toMatchObject({ code: 'unavailable', retryable: true, interactionId: expect.any(String) })
      const kept = await server.get(`/v1beta/interactions/${error.interactionId}`)
      expect(kept.body).toMatchObject({ status: 'failed', error: { code: 'unavailable', status: 503 } })
      expect(streamed.at(-2)).toMatchObject({ event: 'error', data: { code: 'unavailable', status: 503 } })
      expect(streamed.at(-1)).toMatchObject({ event: 'completed', data: { status: 'failed' } })
      gate.resolve()
      const replay = await server.stream(`/v1beta/interactions/${first.body.interactionId}:stream`)
      expect((await replay.all()).at(-1)!.data.status).toBe('completed')
    } finally {
      await server.stop()
    }
  })
})
