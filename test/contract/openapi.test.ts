/** Checks that /openapi.json and /docs describe the service, and that its answers match them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import {
  type OpenApi,
  type OpenApiDocument,
  type Operation,
  openApiOf,
  pointer,
  resolveIn,
} from '../support/openapi.ts'
import { type Answer, type Server, startServer } from '../support/server.ts'

/** The documented endpoints of agents, credentials and interactions. `{}` is a path parameter. */
const ENDPOINTS: [string, string][] = [
  ['post', '/v1beta/agents'],
  ['get', '/v1beta/agents'],
  ['get', '/v1beta/agents/{}'],
  ['patch', '/v1beta/agents/{}'],
  ['delete', '/v1beta/agents/{}'],
  ['get', '/v1beta/agents/{}/versions'],
  ['get', '/v1beta/agents/{}/versions/{}'],
  ['post', '/v1beta/credentials'],
  ['get', '/v1beta/credentials'],
  ['get', '/v1beta/credentials/{}'],
  ['patch', '/v1beta/credentials/{}'],
  ['delete', '/v1beta/credentials/{}'],
  ['post', '/v1beta/interactions'],
  ['get', '/v1beta/interactions'],
  ['post', '/v1beta/interactions:stream'],
  ['get', '/v1beta/interactions/{}'],
  ['delete', '/v1beta/interactions/{}'],
  ['get', '/v1beta/interactions/{}:stream'],
  ['post', '/v1beta/interactions/{}:cancel'],
  ['post', '/v1beta/interactions/{}/cancel'],
  ['post', '/v1beta/interactions/{}:approve'],
  ['post', '/v1beta/interactions/{}/approve'],
]

let provider: FakeProvider
let server: Server
let document: OpenApiDocument
let api: OpenApi
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when('', () => ({ text: 'Done.' }))
  server = await startServer({ provider })
  api = await openApiOf(server.url)
  document = api.document
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

function* refs(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, part] of Object.entries(value)) {
    if (key === '$ref' && typeof part === 'string') yield part
    else yield* refs(part)
  }
}

describe('/openapi.json', () => {
  it('needs no key and is OpenAPI 3.1', async () => {
    const response = await fetch(`${server.url}/openapi.json`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^application\/(vnd\.oai\.openapi\+)?json/)
    expect(document.openapi).toMatch(/^3\.1\.\d+$/)
    expect(document.info).toMatchObject({ title: expect.stringMatching(/\S/), version: expect.stringMatching(/\S/) })
    for (const path of Object.keys(document.paths)) expect(path).toMatch(/^\//)
  })

  it.each(ENDPOINTS)('has %s %s with an id, a summary, the key and its error responses', (method, path) => {
    const [, { operationId, summary, security, responses }] = api.operation(method, path)
    expect(operationId).toMatch(/^\w+$/)
    expect(summary).toMatch(/\S/)
    const schemes = (security ?? document.security ?? []).flatMap((requirement) => Object.keys(requirement))
    expect(schemes.map((name) => document.components?.securitySchemes?.[name])).toContainEqual(
      expect.objectContaining({ type: 'apiKey', in: 'header', name: 'x-svc-api-key' }),
    )
    const statuses = Object.keys(responses)
    expect(statuses).toEqual(expect.arrayContaining(['200']))
    const covers = (status: string) => statuses.some((known) => [status, `${status[0]}XX`, 'default'].includes(known))
    for (const status of ['400', '401', '403', '429', '500']) expect(covers(status), `${status}`).toBe(true)
    if (path.includes('{}')) expect(covers('404')).toBe(true)
  })

  it('has a unique id for each operation', () => {
    const ids = api.operations().map(([, , { operationId }]) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('declares exactly the parameters of each path', () => {
    for (const [method, path, { parameters = [] }] of api.operations()) {
      const named = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name!)
      const declared = parameters.filter((parameter) => parameter.in === 'path')
      expect(declared.map(({ name }) => name).sort(), `${method} ${path}`).toEqual(named.sort())
      for (const { required } of declared) expect(required).toBe(true)
    }
  })

  it('has no unresolved reference', () => {
    const all = [...refs(document)]
    for (const ref of all) expect(ref.startsWith('#/') && resolveIn(document, ref.slice(1)), ref).toBeTruthy()
  })

  it('documents the fields of agents and requests', () => {
    const fields = (method: string, path: string) => {
      const [name] = api.operation(method, path)
      let schema = resolveIn(
        document,
        pointer('paths', name, method, 'requestBody', 'content', 'application/json', 'schema'),
      )
      while ((schema as { $ref?: string })?.$ref)
        schema = resolveIn(document, (schema as { $ref: string }).$ref.slice(1))
      return schema as { properties: Record<string, object>; required?: string[] }
    }
    const agent = ['displayName', 'description', 'systemInstruction', 'model', 'tools', 'skills', 'policy']
    const run = ['instruction', 'agentId', 'model', 'tools', 'skills', 'files', 'mcp', 'policy', 'stream']
    expect(Object.keys(fields('post', '/v1beta/agents').properties)).toEqual(expect.arrayContaining(agent))
    expect(Object.keys(fields('patch', '/v1beta/agents/{}').properties)).toEqual(expect.arrayContaining(agent))
    for (const path of ['/v1beta/interactions', '/v1beta/interactions:stream']) {
      const schema = fields('post', path)
      expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(run))
      expect(schema.required).toEqual(['instruction'])
    }
  })

  it.each<[string, string, string[]]>([
    ['get', '/v1beta/agents', ['pageSize', 'pageToken', 'order', 'model']],
    ['get', '/v1beta/agents/{}/versions', ['pageSize', 'pageToken']],
    ['patch', '/v1beta/agents/{}', ['if-match']],
    ['post', '/v1beta/interactions', ['idempotency-key', 'prefer', 'view']],
    ['get', '/v1beta/interactions', ['pageSize', 'pageToken', 'order', 'agentId', 'status']],
    ['get', '/v1beta/interactions/{}', ['view']],
    ['get', '/v1beta/interactions/{}:stream', ['last-event-id', 'lastEventId']],
  ])('documents the parameters of %s %s, and the revision', (method, path, names) => {
    const [name, { parameters = [] }] = api.operation(method, path)
    const shared = (document.paths[name] as unknown as Pick<Operation, 'parameters'>).parameters ?? []
    const known = [...parameters, ...shared].map((parameter) =>
      '$ref' in parameter ? (resolveIn(document, String(parameter.$ref).slice(1)) as typeof parameter) : parameter,
    )
    const said = known.map((parameter) => (parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name))
    expect(said).toEqual(expect.arrayContaining([...names, 'api-revision']))
  })

  it('documents the streams as text/event-stream', () => {
    for (const [method, path] of [
      ['post', '/v1beta/interactions:stream'],
      ['post', '/v1beta/interactions'],
      ['get', '/v1beta/interactions/{}:stream'],
    ] as const) {
      const [, { responses }] = api.operation(method, path)
      expect(Object.keys(responses['200']?.content ?? {})).toContain('text/event-stream')
    }
  })

  it('has only valid schemas', () => {
    const bodies = api.operations().flatMap(([method, path, { requestBody, responses }]) => [
      ...Object.keys(requestBody?.content ?? {}).map((type) =>
        pointer('paths', path, method, 'requestBody', 'content', type, 'schema'),
      ),
      ...Object.entries(responses).flatMap(([status, { content = {} }]) =>
        Object.keys(content)
          .filter((type) => content[type]?.schema)
          .map((type) => pointer('paths', path, method, 'responses', status, 'content', type, 'schema')),
      ),
    ])
    expect(bodies.length).toBeGreaterThan(ENDPOINTS.length)
    for (const place of bodies) {
      expect(api.ajv.validateSchema(resolveIn(document, place) as object), `${place} ${api.ajv.errorsText()}`).toBe(
        true,
      )
      expect(() => api.ajv.compile({ $ref: `openapi#${place}` }), place).not.toThrow()
    }
  })
})

describe('the answers of the service', () => {
  it('match the documented schemas on all endpoints', async () => {
    provider.when('[tool]', { reasoning: 'Hm.', toolCalls: [{ name: 'nothing', args: { a: 1 } }] }, { text: 'Seen.' })
    provider.when('[broken]', { fault: 'status:400' })
    const agent = (await check('post', '/v1beta/agents', '/v1beta/agents', 200, {
      displayName: 'Checked',
      tools: ['file_read', 'teleport'],
      policy: { maxTurnDuration: 60 },
      labels: { a: 'b' },
      colour: 'red',
    })) as { id: string }
    const one = `/v1beta/agents/${agent.id}`
    await check('post', '/v1beta/agents', '/v1beta/agents', 200, {})
    await check('post', '/v1beta/agents', '/v1beta/agents', 400, { tools: 5 })
    await check('post', '/v1beta/agents', '/v1beta/agents', 409, { id: 'twice' }, { id: 'twice' })
    await check('patch', '/v1beta/agents/{}', one, 200, { systemInstruction: 'Be exact.' })
    await check('get', '/v1beta/agents/{}', one, 200)
    await check('get', '/v1beta/server', '/v1beta/server', 200)
    await check('get', '/v1beta/agents', '/v1beta/agents?pageSize=1', 200)
    await check('get', '/v1beta/agents', '/v1beta/agents?pageSize=x', 400)
    await check('get', '/v1beta/agents/{}/versions', `${one}/versions`, 200)
    await check('get', '/v1beta/agents/{}/versions/{}', `${one}/versions/1`, 200)
    const run = (await check('post', '/v1beta/interactions', '/v1beta/interactions', 200, {
      agentId: agent.id,
      instruction: 'go [tool]',
      labels: { a: 'b' },
    })) as { interactionId: string }
    const it = `/v1beta/interactions/${run.interactionId}`
    await check('post', '/v1beta/interactions', '/v1beta/interactions', 200, { instruction: 'hi', background: true })
    await check('post', '/v1beta/interactions', '/v1beta/interactions?view=short', 200, { instruction: 'hi' })
    await check('post', '/v1beta/interactions', '/v1beta/interactions', 500, { instruction: 'go [broken]' })
    await check('post', '/v1beta/interactions', '/v1beta/interactions', 404, { instruction: 'hi', agentId: 'nobody' })
    await check('post', '/v1beta/interactions:stream', '/v1beta/interactions:stream', 400, {})
    await check('get', '/v1beta/interactions/{}', it, 200)
    await check('get', '/v1beta/interactions/{}', `${it}?view=short`, 200)
    await check('get', '/v1beta/interactions/{}', '/v1beta/interactions/nobody', 404)
    await check('get', '/v1beta/interactions', '/v1beta/interactions', 200)
    await check('get', '/v1beta/interactions/{}:stream', '/v1beta/interactions/nobody:stream', 404)
    await check('post', '/v1beta/interactions/{}:cancel', `${it}:cancel`, 409)
    await check('post', '/v1beta/interactions/{}/cancel', `${it}/cancel`, 409)
    await check('delete', '/v1beta/interactions/{}', it, 200)
    await check('delete', '/v1beta/agents/{}', one, 200)
    await check('delete', '/v1beta/agents/{}', one, 404)
  })

  it.each<[string, object]>([
    ['/v1beta/interactions', { instruction: 'hi' }],
    [
      '/v1beta/interactions',
      { instruction: 'hi', tools: ['teleport'], labels: { a: 'b' }, policy: { maxTurnDuration: 60 } },
    ],
    ['/v1beta/interactions', { instruction: 'hi', files: [{ name: 'a/b.txt', content: 'x', encoding: 'utf-8' }] }],
    ['/v1beta/interactions', { instruction: 'hi', model: null, tools: null, policy: null, agentId: null }],
    ['/v1beta/interactions', { instruction: 'hi', unheardOf: true }],
    ['/v1beta/interactions', { instruction: 'hi', mcp: [{ name: 'a', url: 'https://10.0.0.1', authentication: 't' }] }],
    ['/v1beta/interactions', {}],
    ['/v1beta/interactions', { instruction: 5 }],
    ['/v1beta/interactions', { instruction: '' }],
    ['/v1beta/interactions', { instruction: 'hi', tools: [1] }],
    ['/v1beta/interactions', { instruction: 'hi', policy: { maxTurnDuration: 'long' } }],
    ['/v1beta/interactions', { instruction: 'hi', stream: 'yes' }],
    ['/v1beta/agents', {}],
    ['/v1beta/agents', { id: 'documented-slug', tools: ['file_read'], displayName: null }],
    ['/v1beta/agents', { id: 'Not A Slug' }],
    ['/v1beta/agents', { displayName: 5 }],
  ])('are 200 or 400 as the request schema says: %s %j', async (path, body) => {
    const [name] = api.operation('post', path)
    const place = pointer('paths', name, 'post', 'requestBody', 'content', 'application/json', 'schema')
    const against = api.complaints(place, body)
    const { status, text } = await server.post(path, body)
    expect(status, `${text}\n${against}`).toBe(against === '' ? 200 : 400)
  })

  it('match the documented error without a key', async () => {
    const response = await fetch(`${server.url}/v1beta/agents`)
    const place = api.schemaPlace('get', '/v1beta/agents', 401, 'application/json')
    expect(api.complaints(place, await response.json())).toBe('')
  })

  /** Sends the bodies in sequence; the last answer must have this status and match its documented schema. */
  async function check(
    method: string,
    path: string,
    at: string,
    status: number,
    ...bodies: object[]
  ): Promise<unknown> {
    let answer: Answer | undefined
    for (const body of bodies.length > 0 ? bodies : [undefined]) {
      answer = await server.request(method.toUpperCase(), at, body)
    }
    expect(answer!.status, `${method} ${at} ${answer!.text}`).toBe(status)
    const place = api.schemaPlace(method, path, status, 'application/json')
    expect(api.complaints(place, answer!.body), `${method} ${at} ${answer!.text}`).toBe('')
    return answer!.body
  }
})

describe('a documented answer schema', () => {
  it('rejects missing and invalid fields', async () => {
    const place = api.schemaPlace('post', '/v1beta/agents', 200, 'application/json')
    const { body } = await server.post('/v1beta/agents', {})
    expect(api.complaints(place, body)).toBe('')
    for (const field of ['id', 'version', 'createTime', 'etag']) {
      const { [field]: _, ...rest } = body
      expect(api.complaints(place, rest), field).not.toBe('')
    }
    expect(api.complaints(place, { ...body, version: 'one' })).not.toBe('')
    const failed = api.schemaPlace('post', '/v1beta/agents', 400, 'application/json')
    expect(api.complaints(failed, { error: 'text' })).not.toBe('')
  })
})

describe('/docs', () => {
  it('is a page that needs no key and names every endpoint', async () => {
    const response = await fetch(`${server.url}/docs/reference.html`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^text\/html/)
    const text = unescaped((await response.text()).replaceAll(/<[^>]*>/g, ' ')).replaceAll(/\s+/g, ' ')
    for (const [method, path] of api.operations()) {
      const place = text.indexOf(`${method.toUpperCase()} ${path} `)
      if (path.startsWith('/v1beta/')) expect(place, `${method} ${path}`).toBeGreaterThanOrEqual(0)
    }
  })

  it('loads nothing from other hosts', async () => {
    const response = await fetch(`${server.url}/docs`)
    const html = await response.text()
    const loaded = [
      ...html.matchAll(
        /<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data)\s*=\s*["']?([^"'\s>]+)/gi,
      ),
      ...html.matchAll(/<link\b[^>]*?\bhref\s*=\s*["']?([^"'\s>]+)/gi),
      ...html.matchAll(/url\(\s*["']?([^"')]+)/gi),
      ...html.matchAll(/@import\s+["']([^"']+)/gi),
      ...html.matchAll(/\b(?:fetch|import)\(\s*["'`]([^"'`]+)/gi),
    ].map(([, address]) => address!)
    for (const address of loaded) {
      const { protocol, origin } = new URL(address, server.url)
      expect(protocol === 'data:' || origin === new URL(server.url).origin, address).toBe(true)
    }
  })
})

function unescaped(html: string): string {
  return html
    .replaceAll(/&#x([0-9a-f]+);/gi, (_, code) => String.fromCodePoint(Number.parseInt(code, 16)))
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}

describe('the events of a stream', () => {
  it.each(['full', 'short'])('match StreamEvent in the %s form', async (view) => {
    const call = { name: 'code_execution', args: { code: 'print(1, flush=True)' } }
    provider.when('[works]', { reasoning: ['Hm, ', 'so.'], toolCalls: [call] }, { text: ['It is ', '1.'] })
    provider.when('[fails]', { fault: 'status:400' })
    const seen = new Set<string>()
    for (const instruction of ['[works]', '[fails]']) {
      const fields = { instruction, tools: ['code_execution', 'telepathy'] }
      for (const event of await (await server.stream(`/v1beta/interactions:stream?view=${view}`, fields)).all()) {
        expect(api.complaints('/components/schemas/StreamEvent', { ...event, id: Number(event.id) }), event.event).toBe(
          '',
        )
        seen.add(event.event)
      }
    }
    const often = [
      'reasoning_started',
      'tool_call',
      'tool_result',
      'partial_output',
      'stage',
      'warning',
      'error',
      'completed',
    ]
    expect([...seen]).toEqual(expect.arrayContaining(often))
  })
})
