/** Validation of requests: errors name the field and the reason; unknown fields cause warnings, never errors. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Edge, openEdge } from './edge.ts'

let edge: Edge
beforeAll(async () => {
  edge = await openEdge({
    limits: { network: { allow: ['*.up.com'] }, inlineFilesBytes: 100, labels: 2, files: 3, tools: 4 },
  })
})
afterAll(() => edge.close())

const file = (name: unknown, more: object = { content: '' }) => ({ files: [{ name, ...more }] })

test.each<[object, string | undefined, string]>([
  [{ instruction: undefined }, 'instruction', 'is required'],
  [{ instruction: null }, 'instruction', 'not null'],
  [{ instruction: '' }, 'instruction', 'must not be empty'],
  [{ instruction: 7 }, 'instruction', 'must be a string, not a number'],
  [{ instruction: 'x'.repeat(200_001) }, 'instruction', 'at most 200,000 characters; it has 200,001'],
  [{ systemInstruction: 'x'.repeat(100_001) }, 'systemInstruction', 'at most 100,000'],
  [{ policy: { maxTurnDuration: 0 } }, 'policy.maxTurnDuration', 'from 1 to 28,800 seconds'],
  [{ policy: { maxTurnDuration: 28_801 } }, 'policy.maxTurnDuration', 'from 1 to 28,800 seconds'],
  [{ policy: { maxTurnDuration: '60' } }, 'policy.maxTurnDuration', 'not a string'],
  [{ policy: { maxTurnDuration: 1.5 } }, 'policy.maxTurnDuration', 'must be a whole number, not the number 1.5'],
  [{ policy: { maxOutputTokens: 1_000_001 } }, 'policy.maxOutputTokens', 'from 1 to 1,000,000 tokens'],
  [{ policy: { maxCost: 0 } }, 'policy.maxCost', 'must be more than 0'],
  [{ policy: [] }, 'policy', 'must be an object, not an array'],
  [{ policy: { maxToolDuration: 0 } }, 'policy.maxToolDuration', 'from 1 to 28,800 seconds'],
  [{ policy: { sandbox: [] } }, 'policy.sandbox', 'must be an object, not an array'],
  [{ policy: { sandbox: { memoryMiB: 513 } } }, 'policy.sandbox.memoryMiB', 'from 64 to 512 MiB'],
  [{ policy: { sandbox: { memoryMiB: 100.5 } } }, 'policy.sandbox.memoryMiB', 'must be a whole number'],
  [{ policy: { sandbox: { cpus: 0.05 } } }, 'policy.sandbox.cpus', 'from 0.1 to 1 cores'],
  [{ policy: { sandbox: { pids: 15 } } }, 'policy.sandbox.pids', 'from 16 to 128'],
  [{ policy: { sandbox: { workspaceMiB: 0 } } }, 'policy.sandbox.workspaceMiB', 'from 1 to 256 MiB'],
  [{ policy: { sandbox: { files: 50_001 } } }, 'policy.sandbox.files', 'from 100 to 50,000'],
  [{ policy: { sandbox: { outputBytes: 1 } } }, 'policy.sandbox.outputBytes', 'from 1,024 to 65,536 bytes'],
  [{ tools: 'code_execution' }, 'tools', 'must be an array, not a string'],
  [{ tools: ['a', 5] }, 'tools[1]', 'must be a string'],
  [{ tools: ['a', 'b', 'c', 'd', 'e'] }, 'tools', 'at most 4 entries; it has 5'],
  [{ stream: 'true' }, 'stream', 'must be true or false'],
  [{ agentVersion: 1 }, 'agentVersion', 'agentId'],
  [{ agentId: 'x', agentVersion: 0 }, 'agentVersion', 'at least 1'],
  [{ onDisconnect: 'stop' }, 'onDisconnect', '"continue", "cancel"'],
  [{ labels: { a: '1', b: '2', c: '3' } }, 'labels', 'at most 2 entries'],
  [{ labels: { a: 1 } }, 'labels.a', 'must be a string'],
  [{ labels: { a: 'x'.repeat(513) } }, 'labels.a', 'at most 512'],
  [{ labels: { ['k'.repeat(65)]: '' } }, `labels.${'k'.repeat(65)}`, 'longer than 64'],
  [
    { network: 'public' },
    'network',
    'must be "disabled" or an allow-list: the operator of this server allows *.up.com',
  ],
  [{ network: { allow: ['example.com'] } }, 'network', 'asks for example.com, but the operator of this server allows'],
  [{ network: { allow: ['a.up.com', 'up.com'] } }, 'network', 'asks for up.com, but'],
  [{ network: { allow: ['a.up.com:8443'] } }, 'network', 'asks for a.up.com:8443, but'],
  [{ network: { allow: ['*.notup.com'] } }, 'network', 'asks for *.notup.com, but'],
  [{ network: { allow: ['http://a.up.com'] } }, 'network.allow[0]', 'must be a host'],
  [{ network: { allow: ['a.up.com', '127.0.0.1'] } }, 'network.allow[1]', 'must be a name'],
  [{ network: { allow: ['0x7f.1'] } }, 'network.allow[0]', 'must be a name'],
  [{ network: { allow: ['[::1]:80'] } }, 'network.allow[0]', 'must be a host'],
  [{ network: { allow: ['*.com'] } }, 'network.allow[0]', 'top-level domain'],
  [{ network: { allow: ['a.*.com'] } }, 'network.allow[0]', 'must be a host'],
  [{ network: { allow: ['*'] } }, 'network.allow[0]', 'must be a host'],
  [{ network: { allow: ['a.up.com\u0000'] } }, 'network.allow[0]', 'must be a host'],
  [{ network: { allow: ['a.up.com\n'] } }, 'network.allow[0]', 'must be a host'],
  [{ network: { allow: ['münchen.up.com'] } }, 'network.allow[0]', 'punycode'],
  [{ network: { allow: ['a.up.com:0'] } }, 'network.allow[0]', 'port from 1'],
  [{ network: { allow: ['a.up.com:65536'] } }, 'network.allow[0]', 'port from 1'],
  [
    { network: { allow: ['a.up.com'], inject: [{ host: 'b.up.com', credentialId: 'c' }] } },
    'network.inject[0].host',
    'must be in `network.allow`',
  ],
  [
    { network: { allow: ['*.up.com'], inject: [{ host: '*.up.com', credentialId: 'c' }] } },
    'network.inject[0].host',
    'must be one host',
  ],
  [
    { network: { allow: ['a.up.com'], inject: [{ host: 'a.up.com', header: 'Host', credentialId: 'c' }] } },
    'network.inject[0].header',
    'HTTP itself needs',
  ],
  [{ network: 'open' }, 'network', '"disabled", "public"'],
  [{ webhook: 'https://example.com' }, 'webhook', 'must be an object'],
  [{ webhook: {} }, 'webhook.url', 'is required'],
  [{ mcp: [{}] }, 'mcp[0].name', 'is required'],
  [{ mcp: [{ name: 'a b' }] }, 'mcp[0].name', 'letters'],
  [{ mcp: [{ name: 'a', url: 'file:///etc' }] }, 'mcp[0].url', 'https://'],
  [{ mcp: [{ name: 'a', url: 'https://u:p@example.com' }] }, 'mcp[0].url', 'password'],
  [{ mcp: [{ name: 'a', authentication: { type: 'magic' } }] }, 'mcp[0].authentication', 'bearer token'],
  [{ responseFormat: 'json' }, 'responseFormat', 'must be an object'],
  [{ responseFormat: { type: 'json_schema' } }, 'responseFormat', 'in `schema`'],
  [{ responseFormat: { $schema: 'http://json-schema.org/draft-04/schema#' } }, 'responseFormat', 'draft'],
  [{ responseFormat: { description: 'x'.repeat(70_000) } }, 'responseFormat', 'at most 65536'],
  [file('../x'), 'files[0].name', '`..`'],
  [file('a/../b'), 'files[0].name', '`..`'],
  [file('/etc/passwd'), 'files[0].name', 'relative'],
  [file('a\\b'), 'files[0].name', 'backslash'],
  [file('a\0b'), 'files[0].name', 'control characters'],
  [file('a\nb'), 'files[0].name', 'control characters'],
  [file(''), 'files[0].name', 'must not be empty'],
  [file('a//b'), 'files[0].name', 'empty part'],
  [file('./a'), 'files[0].name', '`.`'],
  [file('a/'), 'files[0].name', 'empty part'],
  [file('é'.repeat(128)), 'files[0].name', 'at most 255 bytes'],
  [file('\ud800'), 'files[0].name', 'Unicode'],
  [file('a', {}), 'files[0]', 'exactly one of'],
  [file('a', { content: '', data: '' }), 'files[0]', 'exactly one of'],
  [file('a', { content: 'a b=', encoding: 'base64' }), 'files[0].content', 'base64'],
  [file('a', { content: 'YQ', encoding: 'base64' }), 'files[0].content', 'base64'],
  [file('a', { data: 'YW_=' }), 'files[0].data', 'base64'],
  [file('a', { content: '', mimeType: 'text' }), 'files[0].mimeType', 'media type'],
  [
    {
      files: [
        { name: 'a', content: '' },
        { name: 'a', content: '' },
      ],
    },
    'files[1].name',
    'another file',
  ],
  [
    {
      files: [
        { name: 'a', content: '' },
        { name: 'a/b', content: '' },
      ],
    },
    'files[1].name',
    'which is a file',
  ],
  [
    {
      files: [
        { name: 'a/b', content: '' },
        { name: 'a', content: '' },
      ],
    },
    'files[1].name',
    'folder',
  ],
  [{ files: [1] }, 'files[0]', 'must be an object'],
])('rejects an invalid field, and names it: %j', async (fields, param, words) => {
  const { status, body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x', ...fields })
  expect(status).toBe(400)
  expect(body.error.code).toBe('invalid_request')
  expect(body.error.param).toBe(param)
  expect(body.error.message).toContain(words)
  expect(body.error.details[0]).toEqual({ param, message: body.error.message })
})

test('lists all invalid fields in details, and the first one as the error', async () => {
  const { body } = await edge.call('POST', '/v1beta/interactions', { policy: { maxTurnDuration: 0 }, tools: 1 })
  expect(body.error.details.map((detail: { param: string }) => detail.param)).toEqual([
    'instruction',
    'tools',
    'policy.maxTurnDuration',
  ])
})

test.each(['[]', '"x"', 'null', '5'])('rejects the body %s because it is not an object', async (body) => {
  const answer = await edge.call('POST', '/v1beta/interactions', body)
  expect(answer.status).toBe(400)
  expect(answer.body.error.message).toContain('The body must be an object')
})

test('inline files over the limit return 413', async () => {
  const files = [
    { name: 'a', content: 'x'.repeat(60) },
    { name: 'b', data: Buffer.alloc(41).toString('base64') },
  ]
  const { status, body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x', files })
  expect(status).toBe(413)
  expect(body.error).toMatchObject({ code: 'payload_too_large', param: 'files' })
})

test('null means absent, and unknown fields are warnings', async () => {
  const { status } = await edge.call('POST', '/v1beta/interactions', {
    instruction: 'x',
    model: null,
    policy: { maxTurnDuration: null, maxTokens: 5 },
    labels: { a: '1', b: null },
    files: [{ name: 'a.txt', content: 'hä', encoding: null, size: 3 }],
    mcp: [{ name: 'm', authentication: 'token', command: 'rm' }],
    topP: 0.5,
  })
  expect(status).toBe(200)
  const { request } = edge.engine.runs.at(-1)!
  expect(request.settings).toEqual({
    policy: {},
    mcp: [{ name: 'm', authentication: { type: 'bearer', token: 'token' } }],
  })
  expect(request.labels).toEqual({ a: '1' })
  expect(request.files).toEqual([{ name: 'a.txt', bytes: new TextEncoder().encode('hä') }])
  expect(request.warnings.map(({ code, param }) => `${code} ${param}`)).toEqual([
    'unknown_field policy.maxTokens',
    'unknown_field files[0].size',
    'unknown_field mcp[0].command',
    'unknown_field topP',
  ])
})

test('a thousand unknown fields cause 20 warnings and a summary', async () => {
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`field${i}`, i]))
  await edge.call('POST', '/v1beta/interactions', { instruction: 'x', ...many })
  const { warnings } = edge.engine.runs.at(-1)!.request
  expect(warnings).toHaveLength(21)
  expect(warnings.at(-1)?.message).toBe('980 more unknown fields were ignored.')
})

test('accepts a wrapped JSON schema and a draft 7 schema', async () => {
  const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'string' }] }
  await edge.call('POST', '/v1beta/interactions', {
    instruction: 'x',
    responseFormat: { type: 'json_schema', schema: draft7 },
  })
  expect(edge.engine.runs.at(-1)!.request.responseFormat).toEqual(draft7)
})

test.each<[object, string]>([
  [{ id: 'Upper' }, 'id'],
  [{ id: '1st' }, 'id'],
  [{ id: `a${'b'.repeat(63)}` }, 'id'],
  [{ model: 'gpt-unknown' }, 'model'],
  [{ policy: { maxTurnDuration: 99_999 } }, 'policy.maxTurnDuration'],
  [{ mcp: [{ name: 'm', authentication: 'token' }] }, 'mcp[0].authentication'],
  [{ mcp: [{ name: 'm', authentication: { type: 'headers', headers: { a: 'b' } } }] }, 'mcp[0].authentication'],
])('refuses an agent with %j', async (fields, param) => {
  const { status, body } = await edge.call('POST', '/v1beta/agents', fields)
  expect(status).toBe(400)
  expect(body.error.param).toBe(param)
})

test('an agent stores a credential id but no secret, and warns about fields that only the server sets', async () => {
  const mcp = [{ name: 'm', authentication: { type: 'credential', credentialId: 'c1' } }]
  const { body } = await edge.call('POST', '/v1beta/agents', { mcp, version: 7, colour: 'red' })
  expect(body.mcp).toEqual(mcp)
  expect(body.version).toBe(1)
  expect(body.warnings.map(({ param }: { param: string }) => param)).toEqual(['version', 'colour', 'mcp[0]'])
  expect((await edge.call('GET', `/v1beta/agents/${body.id}`)).body).not.toHaveProperty('warnings')
})

test('a patch clears fields with null, merges policy and labels, and enforces the limits', async () => {
  const { body: agent } = await edge.call('POST', '/v1beta/agents', {
    displayName: 'A',
    labels: { a: '1', b: '2' },
    policy: { maxTurnDuration: 5, maxOutputTokens: 6, sandbox: { pids: 20, cpus: 0.5 } },
  })
  const url = `/v1beta/agents/${agent.id}`
  const change = { displayName: null, labels: { a: null }, policy: { maxTurnDuration: null, sandbox: { pids: null } } }
  const { body } = await edge.call('PATCH', url, change, { 'content-type': 'application/merge-patch+json' })
  expect(body).toMatchObject({ version: 2, labels: { b: '2' } })
  expect(body.policy).toEqual({ maxOutputTokens: 6, sandbox: { cpus: 0.5 } })
  expect(body).not.toHaveProperty('displayName')
  const over = await edge.call('PATCH', url, { labels: { c: '3', d: '4' } })
  expect(over.body.error).toMatchObject({ status: 400, param: 'labels' })
  expect((await edge.call('PATCH', url, {}, { 'if-match': agent.etag })).status).toBe(412)
  expect((await edge.call('PATCH', url, {}, { 'if-match': `"other", ${body.etag}` })).body.version).toBe(2)
  expect((await edge.call('PATCH', url, {}, { 'if-match': '*' })).status).toBe(200)
})

test.each([
  ['/v1beta/agents?pageSize=0', 'pageSize'],
  ['/v1beta/agents?pageSize=101', 'pageSize'],
  ['/v1beta/agents?pageSize=ten', 'pageSize'],
  ['/v1beta/agents?pageSize=1&pageSize=2', 'pageSize'],
  ['/v1beta/agents?order=up', 'order'],
  ['/v1beta/agents?pageToken=nonsense', 'pageToken'],
  ['/v1beta/agents?label.=x', 'label.'],
  ['/v1beta/agents?label.a=x&label.a=y', 'label.a'],
  ['/v1beta/agents?model=%00', 'model'],
  ['/v1beta/interactions?status=done', 'status'],
  ['/v1beta/interactions?view=tiny', 'view'],
  ['/v1beta/interactions?pageToken=WyJhIiwiYiJd', 'pageToken'],
])('GET %s returns 400 for %s', async (url, param) => {
  const { status, body } = await edge.call('GET', url)
  expect(status).toBe(400)
  expect(body.error.param).toBe(param)
})

test('a page token continues after its page, and is valid only for its own list', async () => {
  for (let i = 0; i < 3; i++) await edge.call('POST', '/v1beta/agents', { labels: { page: 'yes' } })
  const seen: string[] = []
  let token = ''
  do {
    const url = `/v1beta/agents?label.page=yes&pageSize=2&order=asc${token && `&pageToken=${token}`}`
    const { body } = await edge.call('GET', url)
    seen.push(...body.agents.map((agent: { id: string }) => agent.id))
    token = body.nextPageToken ?? ''
    if (token) {
      const other = await edge.call('GET', `/v1beta/agents?pageSize=2&order=asc&pageToken=${token}`)
      expect(other.body.error).toMatchObject({ status: 400, param: 'pageToken' })
    }
  } while (token)
  expect(new Set(seen).size).toBe(3)
  expect(seen).toHaveLength(3)
})
