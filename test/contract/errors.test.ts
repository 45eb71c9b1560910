/** Checks errors: the common error body, the table of codes, paths, methods, bodies, and the order of the checks. */
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'

const BODY_BYTES = 1024 * 1024
const INLINE_BYTES = 4096

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: 'Done.' }))
  const limits = {
    interactionsPerMinute: 1_000_000,
    callsPerMinute: 1_000_000,
    bodyBytes: BODY_BYTES,
    inlineFilesBytes: INLINE_BYTES,
  }
  server = await startServer({ provider, config: { limits } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Sends these bytes unchanged. If `content-length` is set without chunks, only the headers are sent. */
function raw(
  method: string,
  path: string,
  headers: Record<string, string | number>,
  chunks: readonly (Buffer | string)[] = [],
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = httpRequest(server.url + path, { method, headers: { 'x-svc-api-key': server.key, ...headers } })
    call.on('response', (response) => {
      const parts: Buffer[] = []
      response.on('data', (part) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(parts).toString()
        const sent = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]))
        call.destroy()
        resolve({ status: response.statusCode!, headers: sent, text, body: JSON.parse(text) })
      })
    })
    call.on('error', reject)
    if (headers['content-length'] !== undefined && chunks.length === 0) call.flushHeaders()
    else {
      for (const chunk of chunks) call.write(chunk)
      call.end()
    }
  })
}

const JSON_TYPE = { 'content-type': 'application/json' }

function refused(answer: Answer, status: number, code: string) {
  expect(answer.status, answer.text).toBe(status)
  const error = errorOf(answer)
  expect(error.code).toBe(code)
  return error
}

describe('an error', () => {
  it('has its own request id, like every response', async () => {
    const answers = await Promise.all([
      server.get('/v1beta/agents'),
      server.get('/v1beta/agents'),
      server.get('/v1beta/nothing'),
      server.post('/v1beta/interactions', {}),
      server.post('/v1beta/interactions', { instruction: 'hi' }),
      server.get('/healthz'),
      server.get('/docs'),
      server.get('/openapi.json'),
    ])
    const ids = answers.map(({ headers }) => headers.get('x-request-id'))
    for (const id of ids) expect(id).toMatch(/^\S+$/)
    expect(new Set(ids).size).toBe(ids.length)
    const stream = await server.stream('/v1beta/interactions:stream', { instruction: 'hi' })
    expect(stream.headers.get('x-request-id')).toMatch(/^\S+$/)
    await stream.all()
  })

  it('of the model is 500 with the interaction’s id, and the failed interaction can still be read', async () => {
    provider.when('[bad model]', { fault: 'status:400', errorMessage: 'SECRET-INTERNALS of the provider' })
    const answer = await server.post('/v1beta/interactions', { instruction: 'go [bad model]' })
    const error = refused(answer, 500, 'model_error')
    expect(error.interactionId).toEqual(expect.any(String))
    const read = await server.get(`/v1beta/interactions/${error.interactionId}`)
    expect(read.status).toBe(200)
    expect(read.body).toMatchObject({ status: 'failed', error: { code: 'model_error', status: 500 } })
    expect(read.body.usage).toMatchObject({ duration_ms: expect.any(Number) })
  })

  it('of the deadline is 504 with the interaction’s id', async () => {
    provider.when('[stalls]', { fault: 'stall' })
    const answer = await server.post('/v1beta/interactions', {
      instruction: 'go [stalls]',
      policy: { maxTurnDuration: 1 },
    })
    const error = refused(answer, 504, 'deadline_exceeded')
    expect((await server.get(`/v1beta/interactions/${error.interactionId}`)).body.status).toBe('failed')
  })

  it('before the first event of a stream is a plain JSON error', async () => {
    const answer = await server.post('/v1beta/interactions:stream', {}, { accept: 'text/event-stream' })
    expect(refused(answer, 400, 'invalid_request').param).toBe('instruction')
    const flagged = await server.post('/v1beta/interactions', { stream: true }, { accept: 'text/event-stream' })
    expect(refused(flagged, 400, 'invalid_request').param).toBe('instruction')
  })

  it('of a conflicting state is 409: canceling a completed interaction', async () => {
    const { body } = await server.post('/v1beta/interactions', { instruction: 'hi' })
    for (const path of [':cancel', '/cancel']) {
      refused(await server.post(`/v1beta/interactions/${body.interactionId}${path}`), 409, 'conflict')
    }
  })

  it('of an idempotency key reused with another body is 422', async () => {
    const headers = { 'idempotency-key': 'used-once' }
    expect((await server.post('/v1beta/interactions', { instruction: 'one' }, headers)).status).toBe(200)
    refused(await server.post('/v1beta/interactions', { instruction: 'two' }, headers), 422, 'idempotency_mismatch')
  })
})

describe('a request that is not valid HTTP', () => {
  it.each([
    ['a line of nonsense', 'NONSENSE\r\n\r\n'],
    ['two lengths', 'POST /v1beta/agents HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}'],
    ['huge headers', `GET /v1beta/agents HTTP/1.1\r\nHost: a\r\nX-Padding: ${'x'.repeat(40_000)}\r\n\r\n`],
  ])('gets the same error body: %s', async (_, bytes) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.end(bytes)
    const answer = await text(socket)
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    const [first = '', ...lines] = head.split('\r\n')
    const headers = new Headers(lines.map((line) => line.split(/:\s*/, 2) as [string, string]))
    const status = Number(first.split(' ')[1])
    expect([400, 431], answer).toContain(status)
    errorOf({ status, headers, text: body, body: JSON.parse(body) })
  })
})

describe('a path', () => {
  it.each([
    '/v1beta/nothing',
    '/v1beta',
    '/v1/agents',
    '/v2beta/agents',
    '/v1beta/agents/a/b',
    '/v1beta/agents:stream',
  ])('returns 404 if it does not exist: %s', async (path) => {
    refused(await server.get(path), 404, 'not_found')
  })

  it.each([
    ['PUT', '/v1beta/agents', ['GET', 'POST']],
    ['DELETE', '/v1beta/agents', ['GET', 'POST']],
    ['PUT', '/v1beta/agents/x', ['GET', 'PATCH', 'DELETE']],
    ['POST', '/v1beta/agents/x', ['GET', 'PATCH', 'DELETE']],
    ['POST', '/v1beta/agents/x/versions', ['GET']],
    ['DELETE', '/v1beta/agents/x/versions/1', ['GET']],
    ['PATCH', '/v1beta/interactions', ['GET', 'POST']],
    ['PUT', '/v1beta/interactions/x', ['GET', 'DELETE']],
    ['GET', '/v1beta/interactions:stream', ['POST']],
    ['GET', '/v1beta/interactions/x:cancel', ['POST']],
    ['DELETE', '/v1beta/interactions/x/cancel', ['POST']],
    ['POST', '/v1beta/interactions/x:stream', ['GET']],
  ])('returns 405 with Allow for an unsupported method: %s %s', async (method, path, allowed) => {
    const answer = await server.request(method, path, method === 'GET' ? undefined : {})
    refused(answer, 405, 'method_not_allowed')
    const allow = (answer.headers.get('allow') ?? '')
      .split(/\s*,\s*/)
      .filter((name) => !['HEAD', 'OPTIONS'].includes(name))
    expect(allow.sort()).toEqual(allowed.toSorted())
  })

  it('means the same with a percent-encoded colon', async () => {
    for (const colon of ['%3A', '%3a']) {
      const stream = await server.stream(`/v1beta/interactions${colon}stream`, { instruction: 'hi' })
      expect(stream.status).toBe(200)
      expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/)
      const id = stream.headers.get('x-interaction-id')
      expect((await stream.all()).at(-1)!.event).toBe('completed')
      const replay = await server.stream(`/v1beta/interactions/${id}${colon}stream`)
      expect(replay.status).toBe(200)
      expect((await replay.all()).at(-1)!.event).toBe('completed')
      refused(await server.post(`/v1beta/interactions/${id}${colon}cancel`), 409, 'conflict')
      refused(await server.post(`/v1beta/interactions/nobody${colon}cancel`), 404, 'not_found')
    }
  })

  it.each(['/v1beta/agents/%', '/v1beta/agents/%zz', '/v1beta/agents/%C0%80', '/v1beta/interactions/%E0%A4%A:cancel'])(
    'returns a 4xx and never 500 if it is not valid UTF-8: %s',
    async (path) => {
      const answer = await raw('GET', path, {})
      expect([400, 404, 405], answer.text).toContain(answer.status)
      errorOf(answer)
    },
  )

  it('returns the same error body if it is too long', async () => {
    const answer = await raw('GET', `/v1beta/agents/${'a'.repeat(9000)}`, {})
    expect([400, 404, 414], answer.text).toContain(answer.status)
    errorOf(answer)
  })
})

describe('a request body', () => {
  it('whose announced length is too large gets 413 before it is sent', async () => {
    const answer = await raw('POST', '/v1beta/interactions', { ...JSON_TYPE, 'content-length': BODY_BYTES + 1 })
    refused(answer, 413, 'payload_too_large')
  })

  it('that is too large in chunks gets 413', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const chunks = ['{"instruction":"', ...Array(17).fill(chunk), '"}']
    refused(await raw('POST', '/v1beta/interactions', JSON_TYPE, chunks), 413, 'payload_too_large')
  })

  it('of exactly the maximum size is accepted', async () => {
    const body = JSON.stringify({ displayName: 'x', padding: '' })
    const answer = await server.post('/v1beta/agents', body.replace('""', `"${'p'.repeat(BODY_BYTES - body.length)}"`))
    expect(answer.status, answer.text).toBe(200)
  })

  it('with inline files over the limit is refused', async () => {
    const files = [{ name: 'a.txt', content: 'x'.repeat(INLINE_BYTES) }]
    const allowed = await server.post('/v1beta/interactions', { instruction: 'hi', files, background: true })
    expect(allowed.status, allowed.text).toBe(200)
    files.push({ name: 'b.txt', content: 'y' })
    refused(await server.post('/v1beta/interactions', { instruction: 'hi', files }), 413, 'payload_too_large')
  })

  it.each([
    undefined,
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/jsonx',
    'json',
  ])('of type %s gets 415', async (type) => {
    for (const [method, path] of [
      ['POST', '/v1beta/agents'],
      ['POST', '/v1beta/interactions'],
      ['POST', '/v1beta/interactions:stream'],
      ['PATCH', '/v1beta/agents/nobody'],
    ] as const) {
      const answer = await raw(method, path, type ? { 'content-type': type } : {}, ['{"instruction":"hi"}'])
      refused(answer, 415, 'unsupported_media_type')
    }
  })

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset="UTF-8"'])(
    'of type %s is read as JSON',
    async (type) => {
      expect((await server.post('/v1beta/agents', {}, { 'content-type': type })).status).toBe(200)
    },
  )

  it.each([
    '',
    ' ',
    '{',
    '{"instruction":"hi",}',
    "{'instruction':'hi'}",
    '{"instruction":"hi"} x',
    'undefined',
    '{"a":01}',
  ])('that is not JSON gets 400: %j', async (body) => {
    const answer = await raw('POST', '/v1beta/interactions', JSON_TYPE, [body])
    refused(answer, 400, 'invalid_request')
  })

  it.each(['null', '5', '"hi"', '[]', '[{"instruction":"hi"}]', 'true'])(
    'that is not a JSON object gets 400: %s',
    async (body) => {
      for (const path of ['/v1beta/interactions', '/v1beta/agents']) {
        refused(await raw('POST', path, JSON_TYPE, [body]), 400, 'invalid_request')
      }
      refused(await raw('PATCH', '/v1beta/agents/nobody', JSON_TYPE, [body]), 400, 'invalid_request')
    },
  )

  it('that is not UTF-8 gets 400', async () => {
    const bytes = Buffer.concat([Buffer.from('{"instruction":"'), Buffer.from([0xff, 0xfe, 0xc3]), Buffer.from('"}')])
    refused(await raw('POST', '/v1beta/interactions', JSON_TYPE, [bytes]), 400, 'invalid_request')
  })

  it('can be nested 64 levels deep and no deeper', async () => {
    // The object itself is the first level.
    const nested = (depth: number) => `{"instruction":"hi","x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
    const allowed = await server.post('/v1beta/interactions', nested(64))
    expect(allowed.status, allowed.text).toBe(200)
    const { message } = refused(await server.post('/v1beta/interactions', nested(65)), 400, 'invalid_request')
    expect(message).toContain('64')
    refused(await server.post('/v1beta/interactions', nested(100_000)), 400, 'invalid_request')
    const objects = `{"instruction":"hi","x":${'{"a":'.repeat(64)}1${'}'.repeat(64)}}`
    refused(await server.post('/v1beta/interactions', objects), 400, 'invalid_request')
  })

  it('does not count brackets inside a string as nesting', async () => {
    const answer = await server.post('/v1beta/interactions', { instruction: `"${'[{'.repeat(500)}\\"[[[` })
    expect(answer.status, answer.text).toBe(200)
  })

  it('with __proto__ or constructor changes no prototype', async () => {
    for (const body of [
      '{"instruction":"hi","__proto__":{"model":"polluted","isAdmin":true}}',
      '{"instruction":"hi","constructor":{"prototype":{"model":"polluted"}}}',
      '{"instruction":"hi","labels":{"__proto__":"x"}}',
      '{"instruction":"hi","policy":{"__proto__":{"maxTurnDuration":-1}}}',
      '{"instruction":"hi","responseFormat":{"type":"object","properties":{"__proto__":{"type":"string"}}}}',
    ]) {
      const answer = await server.post('/v1beta/interactions', body)
      expect([200, 400], `${body} ${answer.text}`).toContain(answer.status)
      if (answer.status === 400) errorOf(answer)
    }
    const clean = await server.post('/v1beta/agents', {})
    expect(clean.status).toBe(200)
    expect(clean.body.model).toBe('svc-3.5-flash')
    expect(clean.text).not.toContain('polluted')
  })

  it('with NUL characters or lone surrogates never causes a 500', async () => {
    for (const body of [
      '{"instruction":"a\\u0000b"}',
      '{"instruction":"\\ud800"}',
      '{"instruction":"hi","labels":{"\\u0000":"\\udfff"}}',
    ]) {
      const answer = await server.post('/v1beta/interactions', body)
      expect([200, 400], answer.text).toContain(answer.status)
    }
  })

  it('can be empty for a cancel', async () => {
    refused(await raw('POST', '/v1beta/interactions/nobody:cancel', {}), 404, 'not_found')
    refused(await raw('POST', '/v1beta/interactions/nobody/cancel', { 'content-length': 0 }, ['']), 404, 'not_found')
  })
})

describe('the order of the checks', () => {
  const BAD_REVISION = { 'api-revision': 'never' }
  const TEXT = { 'content-type': 'text/plain' }
  const TOO_LARGE = `{"instruction": 5, ${'x'.repeat(BODY_BYTES)}`

  it('checks the key before everything else', async () => {
    const answer = await raw('POST', '/v1beta/interactions', {
      'x-svc-api-key': 'wrong',
      ...BAD_REVISION,
      ...TEXT,
      'content-length': BODY_BYTES * 2,
    })
    refused(answer, 401, 'unauthenticated')
  })

  it('checks the revision before the content type', async () => {
    const answer = await raw('POST', '/v1beta/interactions', {
      ...BAD_REVISION,
      ...TEXT,
      'content-length': BODY_BYTES * 2,
    })
    refused(answer, 400, 'unsupported_api_revision')
    refused(await server.post('/v1beta/interactions', '{', BAD_REVISION), 400, 'unsupported_api_revision')
    refused(await server.get('/v1beta/agents/nobody', BAD_REVISION), 400, 'unsupported_api_revision')
    refused(await server.get('/v1beta/agents?pageSize=x', BAD_REVISION), 400, 'unsupported_api_revision')
  })

  it('checks the content type before the size', async () => {
    const answer = await raw('POST', '/v1beta/interactions', { ...TEXT, 'content-length': BODY_BYTES * 2 })
    refused(answer, 415, 'unsupported_media_type')
  })

  it('checks the size before the JSON', async () => {
    refused(await server.post('/v1beta/interactions', TOO_LARGE), 413, 'payload_too_large')
  })

  it('checks the JSON before the fields', async () => {
    const error = refused(await server.post('/v1beta/interactions', '{"instruction": 5, '), 400, 'invalid_request')
    expect(error).not.toHaveProperty('param')
  })

  it('checks the fields before it looks up the agent', async () => {
    const error = refused(await server.post('/v1beta/interactions', { agentId: 'nobody' }), 400, 'invalid_request')
    expect(error.param).toBe('instruction')
    const model = { agentId: 'nobody', instruction: 'hi', model: 'nothing' }
    expect(refused(await server.post('/v1beta/interactions', model), 400, 'invalid_request').param).toBe('model')
    const patch = await server.request('PATCH', '/v1beta/agents/nobody', { tools: 5 })
    expect(refused(patch, 400, 'invalid_request').param).toBe('tools')
    refused(await server.post('/v1beta/interactions', { agentId: 'nobody', instruction: 'hi' }), 404, 'not_found')
  })
})
