/** Checks API keys, the account's switch for managed agents, and the isolation of projects from each other. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'

let provider: FakeProvider
let server: Server
let otherKey: string
/** Output of the server at its start, which contains the first key. */
let greeting: string
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: 'Done.' }))
  server = await startServer({
    provider,
    config: { limits: { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 } },
  })
  await server.get('/v1beta/agents')
  greeting = server.output()
  otherKey = await server.createKey('other')
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Every route that needs a key, with ids that do not exist. */
const ROUTES: [string, string, object?][] = [
  ['POST', '/v1beta/agents', {}],
  ['GET', '/v1beta/agents'],
  ['GET', '/v1beta/agents/nobody'],
  ['PATCH', '/v1beta/agents/nobody', {}],
  ['DELETE', '/v1beta/agents/nobody'],
  ['GET', '/v1beta/agents/nobody/versions'],
  ['GET', '/v1beta/agents/nobody/versions/1'],
  ['POST', '/v1beta/interactions', { instruction: 'hi' }],
  ['POST', '/v1beta/interactions:stream', { instruction: 'hi' }],
  ['POST', '/v1beta/interactions%3Astream', { instruction: 'hi' }],
  ['POST', '/v1beta/interactions', { instruction: 'hi', stream: true }],
  ['GET', '/v1beta/interactions'],
  ['GET', '/v1beta/interactions/nobody'],
  ['GET', '/v1beta/interactions/nobody:stream'],
  ['POST', '/v1beta/interactions/nobody:cancel'],
  ['POST', '/v1beta/interactions/nobody/cancel'],
  ['DELETE', '/v1beta/interactions/nobody'],
]

/** Sends a request with exactly these headers, and a JSON body if one is given. */
async function bare(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

function expectUnauthenticated(answer: Answer): void {
  expect(answer.status, answer.text).toBe(401)
  expect(errorOf(answer)).toMatchObject({ code: 'unauthenticated', retryable: false })
}

/** Replaces the character at this index by another one of the key's alphabet. */
function typo(key: string, at: number): string {
  const index = at < 0 ? key.length + at : at
  return key.slice(0, index) + (key[index] === 'a' ? 'b' : 'a') + key.slice(index + 1)
}

describe('a call without a valid key', () => {
  it.each(ROUTES)('returns 401 on %s %s', async (method: string, path: string, body?: object) => {
    expectUnauthenticated(await bare(method, path, body, {}))
    expectUnauthenticated(await bare(method, path, body, { 'x-svc-api-key': 'wrong' }))
  })

  it.each([
    '',
    'wrong',
    'errand_sk_',
    `errand_sk_${'0'.repeat(38)}`,
    'errand_sk_ü',
    '{"$ne":null}',
    "' OR 1=1 --",
    'x'.repeat(8000),
  ])('returns 401 with the key %j', async (key) => {
    expectUnauthenticated(await bare('GET', '/v1beta/agents', undefined, { 'x-svc-api-key': encodeURI(key) }))
  })

  it('returns 401 with a typo of one character at any position', async () => {
    for (const at of [0, 8, 10, 11, 20, -7, -2, -1]) {
      expectUnauthenticated(await server.get('/v1beta/agents', { 'x-svc-api-key': typo(server.key, at) }))
    }
  })

  it('returns 401 with a truncated, lengthened, repeated or uppercased key', async () => {
    const { key } = server
    for (const wrong of [key.slice(0, -1), `${key}0`, `${key}, ${key}`, key.toUpperCase(), `Bearer ${key}`]) {
      expectUnauthenticated(await server.get('/v1beta/agents', { 'x-svc-api-key': wrong }))
    }
  })

  it('returns 401 with the key anywhere but in its header', async () => {
    const { key } = server
    expectUnauthenticated(await bare('GET', `/v1beta/agents?x-svc-api-key=${key}`, undefined, {}))
    expectUnauthenticated(await bare('POST', '/v1beta/agents', { 'x-svc-api-key': key }, {}))
  })
})

describe('a key', () => {
  it('is printed alone by keys create, works immediately, and is refused immediately after revocation', async () => {
    const made = await server.errand(['keys', 'create', '--name', 'short-lived', '--project', 'brand-new'])
    expect(made.code, made.stderr).toBe(0)
    expect(made.stdout).toMatch(/^errand_sk_\w+\n$/)
    const headers = { 'x-svc-api-key': made.stdout.trim() }
    expect((await server.get('/v1beta/agents', headers)).status).toBe(200)
    const revoked = await server.errand(['keys', 'revoke', await idOfKey('short-lived')])
    expect(revoked.code, revoked.stderr).toBe(0)
    const refused = await server.get('/v1beta/agents', headers)
    expectUnauthenticated(refused)
    expectUnauthenticated(await server.post('/v1beta/interactions', { instruction: 'hi' }, headers))
    // The answer must not reveal whether a wrong key was once valid.
    const neverGood = await server.get('/v1beta/agents', { 'x-svc-api-key': typo(made.stdout.trim(), -1) })
    expect(errorOf(neverGood)).toEqual(errorOf(refused))
    expect((await server.get('/v1beta/agents')).status).toBe(200)
  })

  it('cannot be revoked if it does not exist', async () => {
    const { code, stderr } = await server.errand(['keys', 'revoke', 'key_nobody'])
    expect(code).not.toBe(0)
    expect(stderr).toContain('key_nobody')
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  it('sees the same agents as another key of the same project', async () => {
    const { body } = await server.post('/v1beta/agents', { displayName: 'theirs' }, { 'x-svc-api-key': otherKey })
    const secondKey = await server.createKey('other')
    expect(secondKey).not.toBe(otherKey)
    expect((await server.get(`/v1beta/agents/${body.id}`, { 'x-svc-api-key': secondKey })).status).toBe(200)
  })

  it('never appears in lists, logs or stored files', async () => {
    const typed = typo(server.key, 20)
    await server.get('/v1beta/agents', { 'x-svc-api-key': typed })
    await server.get('/v1beta/nothing', { 'x-svc-api-key': otherKey })
    await server.post('/v1beta/interactions', '{"broken', { 'x-svc-api-key': otherKey })
    const listed = await server.errand(['keys', 'list'])
    expect(listed.code, listed.stderr).toBe(0)
    expect(listed.stdout).toContain('other')
    const said = server.output().slice(greeting.length) + listed.stdout + listed.stderr
    // Only the greeting of the first start contains the first key.
    expect(said).not.toContain(server.key)
    expect(said).not.toContain(otherKey)
    expect(said).not.toContain(typed)
    for (const file of await filesUnder(server.dataDir)) {
      const bytes = await readFile(file)
      expect(bytes.includes(server.key), file).toBe(false)
      expect(bytes.includes(otherKey), file).toBe(false)
    }
  })
})

describe('the switch experimental.managedAgents', () => {
  afterAll(() => setSwitch('on'))

  it('returns 403 on every route for every valid key while it is off, and takes effect without a restart when it is on again', async () => {
    await setSwitch('off')
    expect((await server.errand(['settings', 'get'])).stdout).toMatch(/experimental\.managedAgents\W+off/)
    for (const [method, path, body] of ROUTES) {
      const answer = await server.request(method, path, body)
      expect(answer.status, `${method} ${path} ${answer.text}`).toBe(403)
      expect(errorOf(answer)).toMatchObject({ code: 'feature_disabled', retryable: false })
    }
    const [headers, wrong] = [await server.createKey('made-while-off'), 'wrong'].map((key) => ({
      'x-svc-api-key': key,
    }))
    expect((await server.get('/v1beta/agents', headers)).status).toBe(403)
    expectUnauthenticated(await server.get('/v1beta/agents', wrong))
    await setSwitch('on')
    for (const [method, path, body] of ROUTES) {
      const { status } = await server.request(method, path, body)
      expect([200, 404], `${method} ${path}`).toContain(status)
    }
    expect((await server.get('/v1beta/agents', headers)).status).toBe(200)
  })

  it('accepts only on and off, and is the only setting', async () => {
    const [wrong, unknown] = await Promise.all([
      server.errand(['settings', 'set', 'experimental.managedAgents', 'maybe']),
      server.errand(['settings', 'set', 'experimental.nothing', 'on']),
    ])
    expect(wrong.code).not.toBe(0)
    expect(unknown.code).not.toBe(0)
    expect((await server.get('/v1beta/agents')).status).toBe(200)
  })
})

describe('a key of another project', () => {
  it('gets the same answer for an agent or run of this project as for one that does not exist', async () => {
    const agent = (await server.post('/v1beta/agents', { displayName: 'secret plan' })).body.id
    const run = (await server.post('/v1beta/interactions', { instruction: 'mine alone' })).body.interactionId
    const cases: [string, (agent: string, run: string) => string, ((agent: string, run: string) => object)?][] = [
      ['GET', (a) => `/v1beta/agents/${a}`],
      ['PATCH', (a) => `/v1beta/agents/${a}`, () => ({ displayName: 'stolen' })],
      ['DELETE', (a) => `/v1beta/agents/${a}`],
      ['GET', (a) => `/v1beta/agents/${a}/versions`],
      ['GET', (a) => `/v1beta/agents/${a}/versions/1`],
      ['POST', () => '/v1beta/interactions', (a) => ({ instruction: 'hi', agentId: a })],
      ['POST', () => '/v1beta/interactions', (a) => ({ instruction: 'hi', agentId: a, agentVersion: 1 })],
      ['POST', () => '/v1beta/interactions:stream', (a) => ({ instruction: 'hi', agentId: a })],
      ['POST', () => '/v1beta/interactions', (_, r) => ({ instruction: 'hi', previousInteractionId: r })],
      ['GET', (_, r) => `/v1beta/interactions/${r}`],
      ['GET', (_, r) => `/v1beta/interactions/${r}?view=short`],
      ['GET', (_, r) => `/v1beta/interactions/${r}:stream`],
      ['POST', (_, r) => `/v1beta/interactions/${r}:cancel`],
      ['POST', (_, r) => `/v1beta/interactions/${r}/cancel`],
      ['DELETE', (_, r) => `/v1beta/interactions/${r}`],
    ]
    for (const [method, path, body] of cases) {
      const [theirs, nobodys] = await Promise.all(
        [
          [agent, run],
          [sameShape(agent), sameShape(run)],
        ].map(async ([a, r]) => {
          const answer = await server.request(method, path(a!, r!), body?.(a!, r!), { 'x-svc-api-key': otherKey })
          const error = errorOf(answer)
          const seen = JSON.stringify({ ...error, status: answer.status })
          return { status: answer.status, seen: seen.replaceAll(a!, 'ID').replaceAll(r!, 'ID'), ...headersOf(answer) }
        }),
      )
      expect(theirs, `${method} ${path(agent, run)}`).toEqual(nobodys)
      if (!JSON.stringify(body?.(agent, run) ?? {}).includes('previousInteractionId')) expect(theirs!.status).toBe(404)
    }
    expect((await server.get(`/v1beta/agents/${agent}`)).body).toMatchObject({ displayName: 'secret plan', version: 1 })
    expect((await server.get(`/v1beta/interactions/${run}`)).body.status).toBe('completed')
  })

  it('cannot cancel a run of this project', async () => {
    const gate = Promise.withResolvers<void>()
    provider.when('[theirs]', { text: 'Finished.', hold: gate.promise })
    const { body } = await server.post('/v1beta/interactions', { instruction: 'go [theirs]', background: true })
    const path = `/v1beta/interactions/${body.interactionId}`
    const answer = await server.post(`${path}:cancel`, undefined, { 'x-svc-api-key': otherKey })
    expect(answer.status).toBe(404)
    expect((await server.get(path)).body.status).toBe('running')
    gate.resolve()
    const all = await (await server.stream(`${path}:stream`)).all()
    expect(all.at(-1)!.data).toMatchObject({ status: 'completed' })
  })

  it('lists no agent or interaction of this project', async () => {
    const agent = (await server.post('/v1beta/agents', {})).body.id
    const run = (await server.post('/v1beta/interactions', { instruction: 'listed' })).body.interactionId
    for (const [path, id] of [
      ['/v1beta/agents', agent],
      ['/v1beta/interactions', run],
    ]) {
      expect((await server.get(path)).text).toContain(id)
      expect((await server.get(path, { 'x-svc-api-key': otherKey })).text).not.toContain(id)
    }
  })

  it('cannot download a file without the valid signature in its URL', async () => {
    const code = "import os; os.makedirs('outputs', exist_ok=True); open('outputs/a.txt', 'w').write('private')"
    provider.when('[file]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Written.' })
    const { body, text } = await server.post('/v1beta/interactions', {
      instruction: 'go [file]',
      tools: ['code_execution'],
    })
    expect(body.files, text).toMatchObject([{ name: expect.stringContaining('a.txt') }])
    const { url } = body.files[0]
    expect(await (await fetch(url)).text()).toBe('private')
    const unsigned = new URL(url)
    unsigned.search = ''
    const bent = new URL(url)
    for (const [name, value] of bent.searchParams) bent.searchParams.set(name, typo(value, -1))
    for (const address of [unsigned, bent]) {
      for (const headers of [{}, { 'x-svc-api-key': otherKey }]) {
        const response = await fetch(address, { headers })
        expect([400, 401, 403, 404], `${address}`).toContain(response.status)
        expect(await response.text()).not.toContain('private')
      }
    }
  })

  it('starts its own run with the same idempotency key and body', async () => {
    const headers = { 'idempotency-key': 'the-same-in-both' }
    const mine = await server.post('/v1beta/interactions', { instruction: 'once' }, headers)
    const again = await server.post('/v1beta/interactions', { instruction: 'once' }, headers)
    const theirs = await server.post(
      '/v1beta/interactions',
      { instruction: 'once' },
      { ...headers, 'x-svc-api-key': otherKey },
    )
    expect(again.body.interactionId).toBe(mine.body.interactionId)
    expect(theirs.status, theirs.text).toBe(200)
    expect(theirs.body.interactionId).not.toBe(mine.body.interactionId)
  })
})

async function setSwitch(value: 'on' | 'off'): Promise<void> {
  const { code, stderr } = await server.errand(['settings', 'set', 'experimental.managedAgents', value])
  expect(code, stderr).toBe(0)
}

/** Returns the id of the key with this name, from the output of `keys list`. */
async function idOfKey(name: string): Promise<string> {
  const { stdout } = await server.errand(['keys', 'list'])
  const line = stdout.split('\n').find((line) => line.split(/\s+/).includes(name))
  const id = /\bkey_\w+/.exec(line ?? '')?.[0]
  if (!id) throw new Error(`no key ${name} in:\n${stdout}`)
  return id
}

/** Returns another id with the same format. */
function sameShape(id: string): string {
  return id.slice(0, -4) + (id.endsWith('0000') ? '1111' : '0000')
}

/** The names of the response headers. Their values, such as the rate counters, differ between calls. */
function headersOf({ headers }: Answer): { headers: string[] } {
  return { headers: [...headers.keys()].sort() }
}

async function filesUnder(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
