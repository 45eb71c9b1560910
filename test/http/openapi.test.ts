/**
 * The OpenAPI document agrees with the server: all routes and methods are documented, no others, and answers match
 * their schemas.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DEFAULT_LIMITS } from '../../src/domain/limits.ts'
import { EVERYTHING } from '../support/openapi.ts'
import { type Edge, openEdge } from './edge.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read any field of the document, and assertions check it.
let document: any
// biome-ignore lint/suspicious/noExplicitAny: tests read any field of the document, and assertions check it.
let api: any
let edge: Edge

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly security: readonly object[]
  readonly responses: Readonly<Record<string, { readonly headers: object }>>
}

type Operations = Readonly<Record<string, Operation>>
beforeAll(async () => {
  edge = await openEdge()
  document = (await edge.call('GET', EVERYTHING)).body
  api = (await edge.call('GET', '/openapi.json')).body
})
afterAll(() => edge.close())

test('documents exactly the paths that are served', () => {
  const hidden = ['/console*', '/console/auth/callback/oidc', '/docs*']
  expect([...Object.keys(document.paths), ...hidden].sort()).toEqual(servedPaths().sort())
})

test('the public document is the full one without console calls, session sign-in, and schemas that only they use', () => {
  for (const [path, operations] of Object.entries<Operations>(document.paths)) {
    const isPublic = /^\/(v1beta\/|healthz$|readyz$|openapi\.json$|docs$)/.test(path)
    expect(api.paths[path], path).toEqual(isPublic ? operations : undefined)
    for (const { security } of Object.values(operations))
      if (isPublic) expect(security).not.toContainEqual({ session: [] })
  }
  expect(Object.keys(api.components.securitySchemes)).toEqual(['apiKey'])
  expect(api.webhooks).toEqual(document.webhooks)
  const text = JSON.stringify(api)
  for (const name of Object.keys(api.components.schemas)) expect(text).toContain(`"#/components/schemas/${name}"`)
  expect(Object.keys(document.components.schemas).length).toBeGreaterThan(Object.keys(api.components.schemas).length)
  expect(text).not.toContain('/console/api')
})

test('the document’s server URL is the configured one, else that of the request’s Host, else the listening address', async () => {
  const config = {
    publicUrl: 'https://agents.example/base/',
    limits: DEFAULT_LIMITS,
    trustedProxies: [],
    metrics: {},
    mcp: {},
  }
  const named = await openEdge({ deps: { config: config as never } })
  for (const [asked, host, url] of [
    [named, 'other.example', 'https://agents.example/base'],
    [edge, 'agents.example:8443', 'http://agents.example:8443'],
    [edge, '[::1]:8080', 'http://[::1]:8080'],
    [edge, 'no host', 'https://errand.example'],
  ] as const) {
    for (const path of ['/openapi.json', EVERYTHING]) {
      const { body, headers } = await asked.call('GET', path, undefined, { host })
      expect(body.servers, host).toEqual([{ url }])
      expect(headers['cache-control']).toMatch(/^private,/)
    }
  }
  await named.close()
})

test('documents exactly the methods that each path supports', async () => {
  for (const [path, operations] of Object.entries(document.paths)) {
    const { headers } = await edge.call('TRACE', path.replace('{version}', '1').replace(/\{\w+\}/g, 'x'))
    const documented = Object.keys(operations as object).map((method) => method.toUpperCase())
    if (documented.includes('GET')) documented.push('HEAD')
    expect(headers.allow, path).toBe(documented.sort().join(', '))
  }
})

/**
 * Paths from the router's printed tree, where indentation is depth. The tree shows the wildcard of file URLs only as
 * `*`.
 */
function servedPaths(): string[] {
  const above: string[] = []
  const lines = edge.app.printRoutes({ commonPrefix: false }).trimEnd().split('\n')
  return lines.flatMap((line) => {
    const [, indent = '', part = ''] = /^([│├└─ ]*)(\S+) \(/.exec(line) ?? []
    const depth = indent.length / 4 - 1
    above.splice(depth, above.length, part)
    const path = above.join('')
    if (path === '/*')
      return ['files', 'input-files'].map((kind) => `/v1beta/${kind}/{projectId}/{interactionId}/{name}`)
    return path
      .replace(/:(\w+)\(\^[^)]*\)/g, '{$1}')
      .replace(/\/:(\w+)/g, '/{$1}')
      .replace('::', ':')
  })
}

test('every documented call reaches its route: no 405, and no unknown path', async () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const method of Object.keys(methods as object)) {
      const url = path.replace('{version}', '1').replace(/\{\w+\}/g, 'x')
      const { status, body } = await edge.call(method.toUpperCase(), url, method === 'patch' ? {} : undefined)
      expect(status, `${method} ${path}`).not.toBe(405)
      expect(String(body?.error?.message), `${method} ${path}`).not.toContain('There is nothing under')
    }
  }
})

test('every operation has a unique id, a summary, a description and its error statuses', () => {
  const ids = new Set<string>()
  for (const [path, methods] of Object.entries<Operations>(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      expect(operation.summary && operation.description, `${method} ${path}`).toBeTruthy()
      expect(ids.has(operation.operationId)).toBe(false)
      ids.add(operation.operationId)
      const statuses = Object.keys(operation.responses)
      expect(statuses).toContain('200')
      expect(statuses).toContain('500')
      if (operation.security.length > 0) expect(statuses).toEqual(expect.arrayContaining(['400', '401', '403', '429']))
      for (const answer of Object.values(operation.responses)) expect(answer.headers).toHaveProperty('X-Request-Id')
    }
  }
})

test('every reference points to an existing component', () => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)]
  expect(refs.length).toBeGreaterThan(50)
  for (const [, kind, name] of refs) expect(document.components[kind!]).toHaveProperty([name!])
  const ofApi = [...JSON.stringify(api).matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)]
  for (const [, kind, name] of ofApi) expect(api.components[kind!]).toHaveProperty([name!])
})

test('answers match their schemas and have no undocumented fields', async () => {
  edge.engine.onSubmit = (run) => {
    run.write({ type: 'warning', code: 'unknown_tool', param: 'tools[0]', message: 'There is no such tool.' })
    run.write({ type: 'reasoning_started', step: 1, content: 'hm' })
    run.write({ type: 'tool_call', step: 2, name: 'code_execution', args: { code: '1' } })
    run.write({ type: 'tool_result', step: 3, output: '1', duration_ms: 1 })
    run.files = [{ name: 'a.csv', blob: 'b', size: 1, mimeType: 'text/csv', sha256: 'aa' }]
    run.end()
  }
  const agent = await edge.call('POST', '/v1beta/agents', {
    displayName: 'A',
    description: 'B',
    systemInstruction: 'C',
    tools: ['code_execution'],
    skills: ['s'],
    mcp: [{ name: 'm', url: 'https://example.com', authentication: { type: 'credential', credentialId: 'c' } }],
    network: 'disabled',
    policy: { maxTurnDuration: 5, maxCost: 1 },
    labels: { a: 'b' },
    extra: 1,
  })
  const run = await edge.call('POST', '/v1beta/interactions', { instruction: 'x', labels: { a: 'b' } })
  const short = await edge.call('GET', `/v1beta/interactions/${run.body.id}?view=short`)
  const refused = await edge.call('POST', '/v1beta/interactions', {})
  const retired = await edge.call('GET', '/v1beta/agents', undefined, { 'api-revision': '1' })
  const cases: [string, unknown][] = [
    ['Agent', agent.body],
    ['AgentList', (await edge.call('GET', '/v1beta/agents?pageSize=1')).body],
    ['AgentVersions', (await edge.call('GET', `/v1beta/agents/${agent.body.id}/versions`)).body],
    ['Interaction', run.body],
    ['Interaction', short.body],
    ['InteractionList', (await edge.call('GET', '/v1beta/interactions')).body],
    ['Server', (await edge.call('GET', '/v1beta/server')).body],
    ['Error', refused.body],
    ['Error', retired.body],
  ]
  for (const [name, body] of cases) expect(problems(name, body), name).toEqual([])
})

test('accepts the example of each documented POST', async () => {
  for (const path of ['/v1beta/agents', '/v1beta/interactions']) {
    const { example } = document.paths[path].post.requestBody.content['application/json']
    expect(example).toBeTruthy()
    expect((await edge.call('POST', path, example)).status).toBe(200)
  }
})

/** Differences between `body` and the component schema, including fields that the schema does not name. */
function problems(name: string, body: unknown): unknown[] {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema({ $id: 'api', components: closed(document.components) })
  const validate = ajv.getSchema(`api#/components/schemas/${name}`)!
  return validate(body) ? [] : (validate.errors ?? [])
}

/** Copies a schema, and forbids additional properties in every object schema that names its properties. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]))
  if (copy.properties && copy.additionalProperties === undefined) copy.additionalProperties = false
  return copy
}
