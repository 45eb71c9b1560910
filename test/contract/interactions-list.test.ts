/** Checks the collection of interactions: list, filters, paging, DELETE, and the short form. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, createGate, ended, ROOMY } from './invariants.ts'

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

/** Creates a new project, so that its list contains only what the test made. */
async function openProject(name: string) {
  const headers = { 'x-svc-api-key': await server.createKey(name) }
  return {
    key: headers['x-svc-api-key'],
    get: (path: string) => server.get(path, headers),
    post: (path: string, body?: unknown) => server.post(path, body, headers),
    remove: (path: string) => server.request('DELETE', path, undefined, headers),
  }
}

function ids({ body }: Answer): string[] {
  return body.interactions.map(({ interactionId }: { interactionId: string }) => interactionId)
}

describe('the list', () => {
  it('is empty in a new project, and contains an interaction as soon as it is accepted', async () => {
    const project = await openProject('fresh')
    const empty = await project.get(PATH)
    expect(empty.status).toBe(200)
    expect(empty.body).toEqual({ interactions: [] })
    const { body } = await project.post(PATH, { instruction: 'one', background: true })
    const { body: list } = await project.get(PATH)
    expect(list.interactions).toMatchObject([{ id: body.interactionId, interactionId: body.interactionId }])
    expect(['running', 'completed']).toContain(list.interactions[0].status)
    await ended(server, body.interactionId, project.key)
  })

  it('is paged, newest or oldest first, with each interaction once', async () => {
    const project = await openProject('pages')
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.push((await project.post(PATH, { instruction: `n${i}` })).body.interactionId)
    for (const [query, order] of [
      ['', made.toReversed()],
      ['&order=desc', made.toReversed()],
      ['&order=asc', made],
    ] as const) {
      const pages: string[][] = []
      let token = ''
      do {
        const page = await project.get(`${PATH}?pageSize=2${query}${token}`)
        expect(page.status).toBe(200)
        pages.push(ids(page))
        token = page.body.nextPageToken && `&pageToken=${encodeURIComponent(page.body.nextPageToken)}`
      } while (token)
      expect(pages.map(({ length }) => length)).toEqual([2, 2, 1])
      expect(pages.flat()).toEqual(order)
    }
    const exact = await project.get(`${PATH}?pageSize=5`)
    expect(ids(exact)).toEqual(made.toReversed())
    expect(exact.body.nextPageToken).toBeUndefined()
  })

  it('does not repeat an older interaction if newer ones are created between two pages', async () => {
    const project = await openProject('moving')
    for (let i = 0; i < 4; i++) await project.post(PATH, { instruction: `n${i}` })
    const first = await project.get(`${PATH}?pageSize=2`)
    await project.post(PATH, { instruction: 'newer' })
    const second = await project.get(`${PATH}?pageSize=2&pageToken=${encodeURIComponent(first.body.nextPageToken)}`)
    expect(new Set([...ids(first), ...ids(second)]).size).toBe(4)
  })

  it('can be filtered by agent, status and labels, alone and together, across pages', async () => {
    const project = await openProject('filters')
    const gate = createGate()
    provider.when('[held list]', () => ({ text: 'Later.', hold: gate.opened }))
    const agentId = (await project.post('/v1beta/agents', {})).body.id
    const run = async (fields: object) => (await project.post(PATH, { instruction: 'x', ...fields })).body.interactionId
    const red = await run({ labels: { team: 'red', 'odd key/1': 'a b&c' } })
    const blue = await run({ labels: { team: 'blue' }, agentId })
    const redAgent = await run({ labels: { team: 'red' }, agentId })
    const running = await run({ instruction: '[held list]', background: true, labels: { team: 'red' } })
    const list = async (query: string) => ids(await project.get(`${PATH}?${query}`))
    expect(await list(`agentId=${agentId}`)).toEqual([redAgent, blue])
    expect(await list('label.team=red')).toEqual([running, redAgent, red])
    expect(await list(`label.team=red&agentId=${agentId}`)).toEqual([redAgent])
    expect(await list(`${encodeURIComponent('label.odd key/1')}=${encodeURIComponent('a b&c')}`)).toEqual([red])
    expect(await list('label.team=green')).toEqual([])
    expect(await list('agentId=agt_none')).toEqual([])
    expect(await list('status=running')).toEqual([running])
    expect(await list('status=completed')).toEqual([redAgent, blue, red])
    expect(await list('status=failed')).toEqual([])
    expect(await list('status=completed&label.team=red')).toEqual([redAgent, red])
    const first = await project.get(`${PATH}?label.team=red&pageSize=1`)
    expect(ids(first)).toEqual([running])
    const token = encodeURIComponent(first.body.nextPageToken)
    expect(await list(`label.team=red&pageSize=1&pageToken=${token}`)).toEqual([redAgent])
    gate.open()
    await ended(server, running, project.key)
    expect(await list('status=running')).toEqual([])
  })

  it('can be filtered by the key that started the interaction, and by time', async () => {
    const project = await openProject('keys')
    const made = await server.errand(['keys', 'create', '--name', 'other', '--project', 'keys'])
    const keyId = made.stderr.split(' ')[0]
    const run = async (key: string) => (await server.post(PATH, { instruction: 'x' }, { 'x-svc-api-key': key })).body
    const [first, second, third] = [await run(project.key), await run(made.stdout.trim()), await run(project.key)]
    const list = async (query: string) => ids(await project.get(`${PATH}?${query}`))
    expect(await list(`keyId=${keyId}`)).toEqual([second.id])
    expect(await list('keyId=key_none')).toEqual([])
    expect(await list(`createdAfter=${second.createTime}`)).toEqual([third.id, second.id])
    expect(await list(`createdBefore=${second.createTime}`)).toEqual([first.id])
    expect(await list(`createdAfter=${third.createTime}&keyId=${keyId}`)).toEqual([])
  })

  it('can be filtered by the requested model, alone and with other filters', async () => {
    const project = await openProject('models')
    const run = async (model: string, fields: object = {}) =>
      (await project.post(PATH, { instruction: 'x', model, ...fields })).body.interactionId
    const flash = await run('svc-3.5-flash', { labels: { team: 'red' } })
    const pro = await run('svc-3.1-pro', { labels: { team: 'red' } })
    const other = await run('svc-3.1-pro')
    const list = async (query: string) => ids(await project.get(`${PATH}?${query}`))
    expect(await list('model=svc-3.1-pro')).toEqual([other, pro])
    expect(await list('model=svc-3.1-pro&label.team=red&status=completed')).toEqual([pro])
    expect(await list('model=svc-3.5-flash&order=asc')).toEqual([flash])
    expect(await list('model=none')).toEqual([])
  })

  it.each([
    ['status=done', 'status'],
    ['createdAfter=yesterday', 'createdAfter'],
    ['order=up', 'order'],
    ['pageSize=0', 'pageSize'],
    ['pageSize=many', 'pageSize'],
    ['pageToken=nonsense', 'pageToken'],
  ])('refuses ?%s with 400 and names the parameter', async (query, param) => {
    const answer = await server.get(`${PATH}?${query}`)
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param })
  })
})

describe('DELETE', () => {
  it('returns 409 while the interaction runs, then 200, then 404 everywhere', async () => {
    const gate = createGate()
    const secret = 'delete-me-8d1f'
    const code = `open('outputs/gone.txt', 'w').write('${secret}')`
    provider.when(
      '[delete]',
      { toolCalls: [{ name: 'code_execution', args: { code } }] },
      { text: 'Done.', hold: gate.opened },
    )
    const fields = { instruction: '[delete]', tools: ['code_execution'], background: true }
    const id = (await server.post(PATH, fields)).body.interactionId
    const early = await server.request('DELETE', `${PATH}/${id}`)
    expect(early.status).toBe(409)
    expect(errorOf(early).code).toBe('conflict')
    gate.open()
    await ended(server, id)
    const { interaction } = await checkEnded(server, id)
    const url = interaction.files[0].url
    expect(await (await fetch(url)).text()).toBe(secret)
    expect(await filesWith(secret)).not.toEqual([])

    const removed = await server.request('DELETE', `${PATH}/${id}`)
    expect(removed.status).toBe(200)
    expect(removed.body).toEqual({})
    for (const answer of [
      await server.get(`${PATH}/${id}`),
      await server.request('DELETE', `${PATH}/${id}`),
      await server.get(`${PATH}/${id}:stream`),
      await server.post(`${PATH}/${id}:cancel`),
    ]) {
      expect(answer.status).toBe(404)
      expect(errorOf(answer).code).toBe('not_found')
    }
    const follow = await server.post(PATH, { instruction: 'x', previousInteractionId: id })
    expect(follow.status).toBe(404)
    expect((await fetch(url)).status).toBe(404)
    expect(ids(await server.get(`${PATH}?pageSize=100`))).not.toContain(id)
    expect(await filesWith(secret)).toEqual([])
  })

  it('also deletes failed and canceled interactions', async () => {
    provider.when('[delete failed]', { fault: 'status:400' })
    const failed = errorOf(await server.post(PATH, { instruction: '[delete failed]' })).interactionId!
    provider.when('[delete cancelled]', { fault: 'stall' })
    const { body } = await server.post(PATH, { instruction: '[delete cancelled]', background: true })
    expect((await server.post(`${PATH}/${body.interactionId}:cancel`)).status).toBe(200)
    for (const id of [failed, body.interactionId]) {
      expect((await server.request('DELETE', `${PATH}/${id}`)).status).toBe(200)
      expect((await server.get(`${PATH}/${id}`)).status).toBe(404)
    }
  })

  it('returns 404 for an interaction of another project, like GET, stream and cancel, and does not delete it', async () => {
    const { body } = await server.post(PATH, { instruction: 'mine' })
    const path = `${PATH}/${body.interactionId}`
    const stranger = await openProject('stranger')
    for (const answer of [
      await stranger.remove(path),
      await stranger.get(path),
      await stranger.get(`${path}:stream`),
      await stranger.post(`${path}:cancel`),
      await stranger.post(PATH, { instruction: 'x', previousInteractionId: body.interactionId }),
    ]) {
      expect(answer.status).toBe(404)
    }
    const none = await stranger.get(`${PATH}/int_0000000000000000000000`)
    const others = await stranger.get(path)
    const plain = ({ body: told }: Answer, id: string) => JSON.stringify(told.error).replaceAll(id, 'ID')
    expect(plain(others, body.interactionId)).toBe(plain(none, 'int_0000000000000000000000'))
    await checkEnded(server, body.interactionId)
  })

  /** Files in the data directory that contain this text, except those of the database. */
  async function filesWith(text: string): Promise<string[]> {
    const found: string[] = []
    for (const entry of await readdir(server.dataDir, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      if (!entry.isFile() || /\.(db|sqlite)(-\w+)?$/.test(entry.name)) continue
      if ((await readFile(path)).includes(text)) found.push(path)
    }
    return found
  }
})

describe('the short form', () => {
  const ARGS = { code: 'print("ä" * 2)' }
  const SHORT_USAGE = { input_tokens: 20, output_tokens: 10 }

  async function run(path: string, headers: Record<string, string> = {}, fields: object = {}) {
    provider.when('[short]', { toolCalls: [{ name: 'code_execution', args: ARGS }] }, { text: 'Short.' })
    return server.post(path, { instruction: '[short]', tools: ['code_execution'], ...fields }, headers)
  }

  function isShort(body: { usage: unknown; executionTrace: { args?: unknown }[] }) {
    expect(body.usage).toEqual(SHORT_USAGE)
    const [call, result] = body.executionTrace
    expect(call).toMatchObject({ step: 1, type: 'tool_call', name: 'code_execution' })
    expect(call!.args).toBeTypeOf('string')
    expect(JSON.parse(call!.args as string)).toEqual(ARGS)
    expect(result).toMatchObject({ step: 2, type: 'tool_result', output: 'ää' })
  }

  it.each<[string, string, Record<string, string>]>([
    ['?view=short', `${PATH}?view=short`, {}],
    ['Prefer: return=minimal', PATH, { prefer: 'return=minimal' }],
    ['Prefer with several preferences', PATH, { prefer: 'wait=60, return=minimal' }],
  ])('is returned by POST with %s', async (_, path, headers) => {
    const { status, body } = await run(path, headers)
    expect(status).toBe(200)
    isShort(body)
    expect(body).toMatchObject({ status: 'completed', output: 'Short.', files: [] })
    await checkEnded(server, body.interactionId)
  })

  it('is returned by GET only on request', async () => {
    const { body } = await run(PATH)
    expect(body.executionTrace[0].args).toEqual(ARGS)
    const path = `${PATH}/${body.interactionId}`
    isShort((await server.get(`${path}?view=short`)).body)
    isShort((await server.get(path, { prefer: 'return=minimal' })).body)
    for (const full of [
      await server.get(path),
      await server.get(`${path}?view=full`),
      await server.get(path, { prefer: 'return=representation' }),
    ]) {
      expect(full.body).toEqual(body)
    }
  })

  it.each<[string, string, Record<string, string>, object]>([
    ['?view=short on the stream path', `${PATH}:stream?view=short`, {}, {}],
    ['Prefer: return=minimal on the stream path', `${PATH}:stream`, { prefer: 'return=minimal' }, {}],
    ['Prefer: return=minimal with stream: true', PATH, { prefer: 'return=minimal' }, { stream: true }],
  ])('is sent in a stream with %s, with the same event numbers', async (_, path, headers, fields) => {
    provider.when('[short]', { toolCalls: [{ name: 'code_execution', args: ARGS }] }, { text: 'Short.' })
    const body = { instruction: '[short]', tools: ['code_execution'], ...fields }
    const stream = await server.stream(path, body, headers)
    const seen = await stream.all()
    const { events } = await checkEnded(server, stream.headers.get('x-interaction-id')!)
    expect(seen.map(({ id, event }) => ({ id, event }))).toEqual(events.map(({ id, event }) => ({ id, event })))
    expect(seen.at(-1)!.data.usage).toEqual(SHORT_USAGE)
    const args = seen.find(({ event }) => event === 'tool_call')!.data.args
    expect(args).toBeTypeOf('string')
    expect(JSON.parse(args)).toEqual(ARGS)
  })

  it('is sent in a resumed stream on request', async () => {
    const { body } = await run(PATH)
    const stream = await server.stream(`${PATH}/${body.interactionId}:stream?view=short&lastEventId=2`)
    const seen = await stream.all()
    expect(seen[0]!.id).toBe('3')
    expect(seen.at(-1)!.data.usage).toEqual(SHORT_USAGE)
    expect(seen.find(({ event }) => event === 'tool_call')!.data.args).toBeTypeOf('string')
  })
})
