/** The examples of the API reference run as they stand, in the order of their table, in each language in a project of its own. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BEGINNINGS, curl, EXAMPLES } from '../../site/examples.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type OpenApi, openApiOf } from '../support/openapi.ts'
import { type Server, startServer } from '../support/server.ts'
import { skillText, zip } from '../support/zip.ts'
import { openDesk } from './desk.ts'

let provider: FakeProvider
let mcp: FakeMcp
let server: Server
let api: OpenApi
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = [{ name: 'remove', annotations: { readOnlyHint: false } }]
  const code = (text: string) => ({ toolCalls: [{ name: 'code_execution', args: { code: text } }] })
  provider.when('17 * 23', code('print(17 * 23)'), { text: '17 * 23 = 391' })
  provider.when('[ended]', code('open("outputs/a.txt", "w").write("a")'), { text: 'Done.' })
  provider.when('[running]', code('import time; time.sleep(600)'))
  provider.when('[waiting]', { toolCalls: [{ name: 'files__remove', args: {} }] }, { text: 'Done.' })
  server = await startServer({ provider, config: { egress: { allowPrivate: [mcp.address] } } })
  api = await openApiOf(server.url)
})
afterAll(async () => {
  await server?.stop()
  await mcp?.close()
  await provider?.close()
})

/** Examples that need an interaction in a certain state; all others of interactions take one that has ended. */
const STATES: Readonly<Record<string, string>> = { cancelInteraction: 'running', approveInteraction: 'waiting' }

test.each(['sh', 'ts', 'python'] as const)('in %s', { timeout: 600_000 }, async (language) => {
  const key = await server.createKey(`examples-${language}`)
  const ids: Record<string, string> = {}
  const call = async (method: string, path: string, body?: object) =>
    (await server.request(method, `/v1beta/interactions${path}`, body, { 'x-svc-api-key': key })).body
  for (const state of ['ended', 'running', 'waiting']) {
    const { id } = await call('POST', '', {
      instruction: `[${state}]`,
      tools: ['code_execution'],
      background: state !== 'ended',
      ...(state === 'waiting' && { mcp: [{ name: 'files', url: mcp.url, requireApproval: true }] }),
    })
    ids[state] = id
  }
  await expect.poll(async () => (await call('GET', `/${ids.waiting}`)).stage).toBe('requires_action')
  const [file] = (await call('GET', `/${ids.ended}`)).files

  const desk = openDesk({ ...server, key })
  try {
    await desk.run('sh', 'cd ~')
    desk.write('greeting.zip', zip([{ name: 'SKILL.md', data: skillText('greeting', 'Greets.') }]))
    for (const { id, ts, python } of EXAMPLES) {
      const interaction = ids[STATES[id] ?? 'ended']!
      const [method, path, doc] = api.operations().find(([, , operation]) => operation.operationId === id)!
      if (language === 'sh') {
        await desk.run('sh', `export INTERACTION_ID=${interaction} FILE_URL='${file.url}'`)
        await desk.run('sh', curl({ method: method.toUpperCase(), path, doc: doc as never }))
      } else {
        const name = language === 'ts' ? 'const interactionId' : 'interaction_id'
        const program = language === 'ts' ? ts : python
        await desk.run(language, `${BEGINNINGS[language]}\n${name} = '${interaction}'\n${program}\n`)
      }
    }
  } finally {
    desk.close()
  }
})

test('every call that a key may make has an example, in each language that a client is for', () => {
  const keyed = api.operations().filter(([, , { security }]) => security?.some((way) => 'apiKey' in way))
  const without = keyed
    .map(([, , { operationId }]) => operationId)
    .filter((id) => !EXAMPLES.some((each) => each.id === id))
  // Spellings for clients that can't write a colon; and what the clients give by another way: a list of events, a version of a skill, a file of one.
  const curlAlone = [
    'streamInteractionBySlash',
    'cancelInteractionBySlash',
    'approveInteractionBySlash',
    'listEvents',
    'getSkillVersion',
    'readSkillFile',
  ]
  expect(without.sort()).toEqual(curlAlone.sort())
  for (const { id } of EXAMPLES) expect(api.operations().map(([, , { operationId }]) => operationId)).toContain(id)
})
