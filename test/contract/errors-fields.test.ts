/** Checks the fields of a request: types, ranges and sizes. Each invalid field is refused with its name. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when('', () => ({ text: 'Done.' }))
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }
  server = await startServer({ provider, config: { limits } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

function run(fields: object, headers?: Record<string, string>): Promise<Answer> {
  return server.post('/v1beta/interactions', { instruction: 'hi', ...fields }, headers)
}

function times<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i))
}

const labels = (count: number) => Object.fromEntries(times(count, (i) => [`key-${i}`, 'v']))

function refusedFor(answer: Answer): string | undefined {
  expect(answer.status, answer.text).toBe(400)
  const { code, param } = errorOf(answer)
  expect(code).toBe('invalid_request')
  return param
}

describe('a request for a run is refused with the field’s name if', () => {
  it.each<[string, object, string]>([
    ['the instruction is missing', { instruction: undefined }, 'instruction'],
    ['the instruction is null', { instruction: null }, 'instruction'],
    ['the instruction is empty', { instruction: '' }, 'instruction'],
    ['the instruction is a number', { instruction: 5 }, 'instruction'],
    ['the instruction is a list', { instruction: ['hi'] }, 'instruction'],
    ['agentId is a number', { agentId: 5 }, 'agentId'],
    ['agentVersion is text', { agentId: 'a', agentVersion: '1' }, 'agentVersion'],
    ['agentVersion is 0', { agentId: 'a', agentVersion: 0 }, 'agentVersion'],
    ['model is a number', { model: 5 }, 'model'],
    ['model is unknown', { model: 'nothing' }, 'model'],
    ['systemInstruction is a number', { systemInstruction: 5 }, 'systemInstruction'],
    ['tools is text', { tools: 'code_execution' }, 'tools'],
    ['a tool is a number', { tools: ['file_read', 5] }, 'tools[1]'],
    ['skills is text', { skills: 'pdf' }, 'skills'],
    ['a skill is an object', { skills: [{}] }, 'skills[0]'],
    ['files is an object', { files: {} }, 'files'],
    ['a file is text', { files: ['a.txt'] }, 'files[0]'],
    ['a file has no name', { files: [{ content: 'x' }] }, 'files[0].name'],
    ['mcp is text', { mcp: 'search' }, 'mcp'],
    ['policy is a list', { policy: [] }, 'policy'],
    ['labels is a list', { labels: [] }, 'labels'],
    ['a label is a number', { labels: { team: 5 } }, 'labels.team'],
    ['stream is text', { stream: 'yes' }, 'stream'],
    ['stream is a number', { stream: 1 }, 'stream'],
    ['background is text', { background: 'true' }, 'background'],
    ['onDisconnect is another word', { onDisconnect: 'explode' }, 'onDisconnect'],
    ['network is another word', { network: 'everything' }, 'network'],
    ['responseFormat is text', { responseFormat: 'json' }, 'responseFormat'],
    ['responseFormat is no schema', { responseFormat: { type: 'nonsense' } }, 'responseFormat'],
    ['previousInteractionId is a number', { previousInteractionId: 5 }, 'previousInteractionId'],
  ])('%s', async (_, fields, param) => {
    const answer = await run(fields)
    expect(refusedFor(answer), answer.text).toBe(param)
  })

  it.each<[string, object]>([
    ['goes up', { name: '../a.txt', content: 'x' }],
    ['goes up later', { name: 'a/../../b', content: 'x' }],
    ['is absolute', { name: '/etc/passwd', content: 'x' }],
    ['has a NUL', { name: 'a\u0000.txt', content: 'x' }],
    ['is empty', { name: '', content: 'x' }],
  ])('the name of a file %s', async (_, file) => {
    expect(refusedFor(await run({ files: [{ name: 'fine.txt', content: 'x' }, file] }))).toBe('files[1].name')
  })

  it.each<[string, object]>([
    ['neither url nor content', { name: 'a' }],
    ['both url and content', { name: 'a', url: 'https://files.example.com/a', content: 'x' }],
    ['both content and data', { name: 'a', content: 'x', data: 'eA==' }],
    ['content that is no text', { name: 'a', content: 5 }],
    ['base64 that is none', { name: 'a', content: '!!!!', encoding: 'base64' }],
    ['data that is no base64', { name: 'a', data: '***' }],
    ['an encoding that is none', { name: 'a', content: 'x', encoding: 'rot13' }],
    ['an http address', { name: 'a', url: 'http://files.example.com/a' }],
    ['a file address', { name: 'a', url: 'file:///etc/passwd' }],
    ['no address at all', { name: 'a', url: 'nowhere' }],
  ])('a file has %s', async (_, file) => {
    expect(refusedFor(await run({ files: [file] }))).toMatch(/^files\[0\]/)
  })

  it.each([
    ['maxTurnDuration', 0, '1', '28800'],
    ['maxTurnDuration', -5, '1', '28800'],
    ['maxTurnDuration', 28_801, '1', '28800'],
    ['maxTurnDuration', 1.5, '', ''],
    ['maxTurnDuration', '60', '', ''],
    ['maxTurnDuration', Number.POSITIVE_INFINITY, '', ''],
    ['maxOutputTokens', 0, '1', '1000000'],
    ['maxOutputTokens', 1_000_001, '1', '1000000'],
    ['maxOutputTokens', true, '', ''],
    ['maxToolDuration', 0, '1', '28800'],
    ['maxCost', -1, '', ''],
    ['maxCost', 'cheap', '', ''],
  ])('policy.%s is %j, and the message states the allowed range', async (name, value, min, max) => {
    const body = JSON.stringify({ instruction: 'hi', policy: { [name]: value } }).replace(':null', ':1e400')
    for (const path of ['/v1beta/interactions', '/v1beta/agents']) {
      const answer = await server.post(path, body)
      expect(refusedFor(answer)).toBe(`policy.${name}`)
      const numbers = errorOf(answer).message.replaceAll(/(?<=\d)[,_ ](?=\d{3})/g, '')
      for (const bound of [min, max]) expect(numbers).toMatch(new RegExp(`\\b${bound}\\b`))
    }
  })

  it('the model is unknown, and the message lists the known ones', async () => {
    const { message } = errorOf(await run({ model: 'gpt-nothing' }))
    expect(message).toContain('svc-3.5-flash')
    expect(message).toContain('svc-3.1-pro')
  })

  it.each<[string, object, string]>([
    ['200,001 characters of instruction', { instruction: 'x'.repeat(200_001) }, 'instruction'],
    ['100,001 characters of systemInstruction', { systemInstruction: 'x'.repeat(100_001) }, 'systemInstruction'],
    ['129 tools', { tools: times(129, () => 'file_read') }, 'tools'],
    ['21 skills', { skills: times(21, (i) => `skill-${i}`) }, 'skills'],
    ['21 MCP servers', { mcp: times(21, (i) => ({ name: `m${i}`, url: `https://m${i}.example.com` })) }, 'mcp'],
    ['101 files', { files: times(101, (i) => ({ name: `${i}.txt`, content: '' })) }, 'files'],
    ['17 labels', { labels: labels(17) }, 'labels'],
    ['a label key of 65', { labels: { ['k'.repeat(65)]: 'v' } }, 'labels'],
    ['a label value of 513', { labels: { k: 'v'.repeat(513) } }, 'labels'],
  ])('it has %s', async (_, fields, param) => {
    const answer = await run(fields)
    expect(refusedFor(answer)).toMatch(new RegExp(`^${param}\\b`))
    // The message is for people, so it must not repeat a value that was too long.
    expect(answer.text.length).toBeLessThan(2000)
  })

  it('an agent exceeds the same limits', async () => {
    for (const [fields, param] of [
      [{ systemInstruction: 'x'.repeat(100_001) }, 'systemInstruction'],
      [{ tools: times(129, () => 'file_read') }, 'tools'],
      [{ skills: times(21, (i) => `skill-${i}`) }, 'skills'],
      [{ mcp: times(21, (i) => ({ name: `m${i}` })) }, 'mcp'],
      [{ labels: labels(17) }, 'labels'],
      [{ labels: { ['k'.repeat(65)]: 'v' } }, 'labels'],
      [{ labels: { k: 'v'.repeat(513) } }, 'labels'],
    ] as const) {
      expect(refusedFor(await server.post('/v1beta/agents', fields))).toMatch(new RegExp(`^${param}\\b`))
    }
  })

  it('a query parameter has an invalid value', async () => {
    const { body } = await run({})
    expect(refusedFor(await server.get('/v1beta/interactions?status=resting'))).toBe('status')
    expect(refusedFor(await server.get('/v1beta/interactions?pageSize=0'))).toBe('pageSize')
    expect(refusedFor(await server.get('/v1beta/interactions?pageToken=x'))).toBe('pageToken')
    expect(refusedFor(await server.get('/v1beta/interactions?order=sideways'))).toBe('order')
    expect(refusedFor(await server.get(`/v1beta/interactions/${body.interactionId}?view=medium`))).toBe('view')
    expect(refusedFor(await server.get(`/v1beta/interactions/${body.interactionId}:stream?lastEventId=x`))).toBe(
      'lastEventId',
    )
  })
})

describe('a request for a run is accepted', () => {
  it.each<[string, object]>([
    ['200,000 characters of instruction', { instruction: 'é'.repeat(200_000) }],
    ['100,000 characters of systemInstruction', { systemInstruction: 'é'.repeat(100_000) }],
    ['128 tools', { tools: times(128, () => 'file_read') }],
    ['20 unknown skills', { skills: times(20, (i) => `skill-${i}`) }],
    ['16 labels at their limits', { labels: { ...labels(15), ['k'.repeat(64)]: 'v'.repeat(512) } }],
    ['the least policy', { policy: { maxOutputTokens: 1 } }],
    ['the widest policy', { policy: { maxTurnDuration: 28_800, maxOutputTokens: 1_000_000 } }],
    ['whole numbers written as 60.0 and 6e1', { policy: { maxTurnDuration: 60, maxOutputTokens: 6e1 } }],
  ])('with %s', async (_, fields) => {
    const { status, text } = await run(fields)
    expect(status, text).toBe(200)
  })

  it('with null for each optional field, like a missing field', async () => {
    const names = 'agentId agentVersion model systemInstruction tools skills files mcp policy stream background labels'
    const more = 'network responseFormat previousInteractionId onDisconnect'
    const nothing = Object.fromEntries(`${names} ${more}`.split(' ').map((name) => [name, null]))
    const { status, body, text } = await run(nothing)
    expect(status, text).toBe(200)
    expect(body.status).toBe('completed')
    expect(body.warnings ?? []).toEqual([])
  })

  it('with unknown tools, fields and skills, each reported as a warning', async () => {
    const { status, body, text } = await run({ tools: ['teleport', 'file_read'], mood: 'good', skills: ['nope'] })
    expect(status, text).toBe(200)
    const params = body.warnings.map(({ param }: { param: string }) => param).sort()
    expect(params).toEqual(['mood', 'skills[0]', 'tools[0]'])
    for (const warning of body.warnings) expect(Object.keys(warning).sort()).toEqual(['code', 'message', 'param'])
    expect((await server.get(`/v1beta/interactions/${body.interactionId}`)).body.warnings).toEqual(body.warnings)
  })

  it('with secrets for MCP servers, which are never shown again', async () => {
    const mcp = [
      { name: 'one', url: 'https://one.example.com/mcp', authentication: 'inline-s3cret' },
      { name: 'two', url: 'https://two.example.com/mcp', authentication: { type: 'bearer', token: 'inline-s3cret' } },
      {
        name: 'three',
        url: 'https://three.example.com',
        authentication: { type: 'headers', headers: { a: 'inline-s3cret' } },
      },
    ]
    const made = await run({ mcp })
    expect(made.status, made.text).toBe(200)
    const path = `/v1beta/interactions/${made.body.interactionId}`
    const stream = await (await server.stream(`${path}:stream`)).all()
    const shown = [made.text, (await server.get(path)).text, (await server.get('/v1beta/interactions')).text]
    for (const text of [
      ...shown,
      JSON.stringify(stream),
      JSON.stringify(provider.requests.at(-1)!.body),
      server.output(),
    ]) {
      expect(text).not.toContain('s3cret')
    }
  })

  it('but not with unknown skills under Prefer: handling=strict, which still accepts unknown tools and fields', async () => {
    const strict = { prefer: 'handling=strict' }
    expect(refusedFor(await run({ skills: ['nope'] }, strict))).toBe('skills[0]')
    const { status, text } = await run({ tools: ['teleport'], mood: 'good' }, strict)
    expect(status, text).toBe(200)
  })

  it.each<[string, object]>([
    ['files by URL', { files: [{ name: 'a', url: 'https://10.0.0.1/a.csv' }] }],
    ['MCP servers', { mcp: [{ name: 'm', url: 'https://10.0.0.1/mcp' }] }],
    ['a network', { network: { allow: ['10.0.0.1'] } }],
    ['a cost limit, where the model has no price', { policy: { maxCost: 0.5 } }],
    ['a webhook', { webhook: { url: 'https://10.0.0.1/hook' } }],
  ])('or refused with the field’s name, but never silently ignored: %s', async (_, fields) => {
    const [name] = Object.keys(fields)
    const { status, body, text } = await run(fields)
    if (status === 200) {
      expect(
        body.warnings.some(({ param }: { param: string }) => param.startsWith(name!)),
        text,
      ).toBe(true)
    } else {
      // A file that cannot be fetched may also end the run itself.
      expect([400, 404], text).toContain(status)
      expect(body.error.param ?? body.error.code, text).toMatch(new RegExp(`^(${name}|file_unavailable)`))
    }
  })
})
