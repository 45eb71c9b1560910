/**
 * Checks that a request never loses a part silently: what the server cannot provide is reported as a warning or a 400.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, ROOMY } from './invariants.ts'

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

interface Warning {
  readonly code: string
  readonly param?: string
  readonly message: string
}

function warningsOf({ status, body, text }: Answer): Warning[] {
  expect(status, text).toBe(200)
  for (const warning of body.warnings ?? []) {
    expect(warning.code).toMatch(/^[a-z_]+$/)
    expect(warning.message).toMatch(/\S/)
  }
  return body.warnings ?? []
}

describe('unknown names in a request', () => {
  it('are ignored with a warning: a tool, a skill, a field, a field of the policy', async () => {
    const answer = await server.post(PATH, {
      instruction: '[unknown]',
      tools: ['code_execution', 'time_machine'],
      skills: ['knitting'],
      colour: 'red',
      policy: { maxTurnDuration: 60, patience: 3 },
    })
    const warnings = warningsOf(answer)
    const told = (word: string) => warnings.filter(({ message, param }) => `${param} ${message}`.includes(word))
    for (const word of ['time_machine', 'knitting', 'colour', 'patience']) expect(told(word), word).toHaveLength(1)
    expect(told('time_machine')[0]!.param).toBe('tools[1]')
    expect(told('knitting')[0]!.param).toBe('skills[0]')
    expect(told('colour')[0]!.param).toBe('colour')
    expect(told('patience')[0]!.param).toBe('policy.patience')
    expect(new Set(warnings.map(({ code }) => code)).size).toBe(3)
    expect(answer.body.resolved.tools).toEqual(['code_execution'])
    const request = provider.requests.find(({ body }) => JSON.stringify(body).includes('[unknown]'))!
    expect(request.body.tools!.map((tool) => tool.function.name)).toEqual(['code_execution', 'job'])
    await checkEnded(server, answer.body.interactionId)
  })

  it('are reported in the stream by the same warnings as events', async () => {
    const stream = await server.stream(`${PATH}:stream`, { instruction: 'x', tools: ['time_machine'], colour: 'red' })
    const seen = await stream.all()
    const { interaction } = await checkEnded(server, stream.headers.get('x-interaction-id')!, seen)
    expect(interaction.warnings).toHaveLength(2)
  })

  it('in a stored agent’s tools and skills are reported as well', async () => {
    const agent = await server.post('/v1beta/agents', { tools: ['time_machine', 'file_read'], skills: ['knitting'] })
    expect(agent.status).toBe(200)
    const answer = await server.post(PATH, { instruction: 'x', agentId: agent.body.id })
    const text = JSON.stringify(warningsOf(answer))
    expect(text).toContain('time_machine')
    expect(text).toContain('knitting')
    expect(answer.body.resolved).toMatchObject({ tools: ['file_read'], skills: [] })
  })

  it('are needed for a warning: known names cause none', async () => {
    const fields = {
      tools: ['code_execution', 'file_read', 'file_write'],
      network: 'disabled',
      skills: [],
      mcp: [],
      files: [],
    }
    expect(warningsOf(await server.post(PATH, { instruction: 'x', ...fields }))).toEqual([])
  })

  it('are refused under Prefer: handling=strict for skills and MCP servers, but not for tools and fields', async () => {
    const strict = { prefer: 'handling=strict' }
    const skill = await server.post(PATH, { instruction: 'x', skills: ['knitting'] }, strict)
    expect(skill.status).toBe(400)
    expect(errorOf(skill).param).toMatch(/^skills/)
    expect(errorOf(skill).message).toBe(
      'No skill "knitting" is registered. The request was refused because of `Prefer: handling=strict`.',
    )
    const mcp = await server.post(PATH, { instruction: 'x', mcp: [{ name: 'loom' }] }, strict)
    expect(errorOf(mcp)).toMatchObject({ status: 400, param: 'mcp[0]' })
    expect(skill.text + mcp.text).not.toMatch(/ignored|goes on/)
    const rest = await server.post(PATH, { instruction: 'x', tools: ['time_machine'], colour: 'red' }, strict)
    expect(warningsOf(rest)).toHaveLength(2)
  })
})

describe('a feature that this server does not provide', () => {
  /** Asserts a 400 that names the field, or a warning about it. Returns the answer. */
  async function told(fields: object, param: RegExp): Promise<Answer> {
    const answer = await server.post(PATH, { instruction: 'x', ...fields })
    if (answer.status === 400) expect(errorOf(answer).param).toMatch(param)
    else expect(warningsOf(answer).map((warning) => warning.param)).toContainEqual(expect.stringMatching(param))
    return answer
  }

  it.each<[string, object, RegExp]>([
    ['web_search', { tools: ['web_search'] }, /^tools\[0\]$/],
    ['an MCP server by url', { mcp: [{ name: 'm', url: 'https://10.0.0.1' }] }, /^mcp/],
    ['an MCP server by name', { mcp: [{ name: 'registered' }] }, /^mcp/],
    ['a skill', { skills: ['pdf@1'] }, /^skills\[0\]$/],
    ['a webhook', { webhook: { url: 'http://hooks.example.com/x' } }, /^webhook/],
    ['a file by s3', { files: [{ name: 'a.csv', url: 's3://bucket/a.csv' }] }, /^files\[0\]/],
    ['a file by gs', { files: [{ name: 'a.csv', url: 'gs://bucket/a.csv' }] }, /^files\[0\]/],
  ])('is reported: %s', async (_, fields, param) => {
    await told(fields, param)
  })

  it('is not among the tools that the model gets or that `resolved` lists', async () => {
    const { status, body } = await server.post(PATH, { instruction: '[tools]', tools: ['web_search'] })
    if (status === 400) return
    expect(body.resolved.tools).toEqual([])
    const request = provider.requests.find(({ body: sent }) => JSON.stringify(sent).includes('[tools]'))!
    expect(request.body.tools ?? []).toEqual([])
  })

  it.each<[string, object, RegExp]>([
    ['web_search', { tools: ['web_search'] }, /^tools/],
    ['an MCP server', { mcp: [{ name: 'm', url: 'https://10.0.0.1' }] }, /^mcp/],
  ])('is reported if a stored agent uses it: %s', async (_, config, param) => {
    const agent = await server.post('/v1beta/agents', config)
    if (agent.status === 400) return void expect(errorOf(agent).param).toMatch(param)
    await told({ agentId: agent.body.id }, param)
  })
})
