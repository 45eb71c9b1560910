/** Checks the list of agents: order, pages and filters. All tests read one project with 57 agents. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const COUNT = 57

let provider: FakeProvider
let server: Server
/** Agent ids in the order of creation. */
const ids: string[] = []
beforeAll(async () => {
  provider = await openFakeProvider()
  server = await startServer({
    provider,
    config: { limits: { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 } },
  })
  for (let i = 0; i < COUNT; i++) {
    const { body } = await server.post('/v1beta/agents', {
      displayName: `agent ${i}`,
      model: i % 3 === 0 ? 'svc-3.1-pro' : 'svc-3.5-flash',
      labels: { parity: i % 2 === 0 ? 'even' : 'odd', 'a.b': `${i}`, ...(i === 5 && { 'sp ace&=': 'v/ä+1' }) },
    })
    ids.push(body.id)
  }
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

interface Page {
  readonly agents: { readonly id: string; readonly createTime: string; readonly model: string }[]
  readonly nextPageToken?: string
}

async function list(query: string, key = server.key): Promise<Page> {
  const answer = await server.get(`/v1beta/agents${query}`, { 'x-svc-api-key': key })
  expect(answer.status, answer.text).toBe(200)
  expect(Object.keys(answer.body).filter((field) => !['agents', 'nextPageToken'].includes(field))).toEqual([])
  return answer.body
}

async function walk(
  query: string,
  between: (seen: string[]) => Promise<unknown> = async () => undefined,
): Promise<Page['agents']> {
  const seen: Page['agents'] = []
  for (let token: string | undefined = ''; token !== undefined; ) {
    const page: Page = await list(`?${query}${token && `&pageToken=${encodeURIComponent(token)}`}`)
    seen.push(...page.agents)
    token = page.nextPageToken
    if (token) await between(idsOf(seen))
  }
  return seen
}

const byTime = (a: { createTime: string }, b: { createTime: string }) =>
  Date.parse(a.createTime) - Date.parse(b.createTime)
const idsOf = (agents: Page['agents']) => agents.map(({ id }) => id)

describe('the list of agents', () => {
  it('returns the 50 newest agents by default, newest first, and a token for the next page', async () => {
    const page = await list('')
    expect(page.agents).toHaveLength(50)
    expect(page.agents).toEqual(page.agents.toSorted((a, b) => byTime(b, a)))
    expect(page.nextPageToken).toEqual(expect.any(String))
  })

  it('contains each agent with all its fields, as GET returns it', async () => {
    const [newest] = (await list('?pageSize=1')).agents
    expect(newest).toEqual((await server.get(`/v1beta/agents/${newest!.id}`)).body)
  })

  it('contains all agents without a page token if the page is large enough', async () => {
    const page = await list('?pageSize=100')
    expect(new Set(idsOf(page.agents))).toEqual(new Set(ids))
    expect(page).not.toHaveProperty('nextPageToken')
  })

  it.each(['order=desc', 'order=asc'])('has no gap and no duplicate when read page by page with %s', async (order) => {
    const agents = await walk(`${order}&pageSize=10`)
    expect(agents).toHaveLength(COUNT)
    expect(new Set(idsOf(agents))).toEqual(new Set(ids))
    const sorted = agents.toSorted((a, b) => (order === 'order=asc' ? byTime(a, b) : byTime(b, a)))
    expect(agents).toEqual(sorted)
  })

  it('is sorted by descending creation time if only a page size is given', async () => {
    expect(idsOf(await walk('pageSize=25'))).toEqual(idsOf(await walk('pageSize=25&order=desc')))
  })

  it('filters by model', async () => {
    const agents = await walk('model=svc-3.1-pro&pageSize=4')
    expect(idsOf(agents).sort()).toEqual(ids.filter((_, i) => i % 3 === 0).sort())
    expect((await list('?model=never-heard-of')).agents).toEqual([])
  })

  it('filters by label, also across pages', async () => {
    const agents = await walk('label.parity=odd&pageSize=7')
    expect(idsOf(agents).sort()).toEqual(ids.filter((_, i) => i % 2 === 1).sort())
    expect(idsOf((await list('?label.a.b=13')).agents)).toEqual([ids[13]])
    expect(
      idsOf((await list(`?${encodeURIComponent('label.sp ace&=')}=${encodeURIComponent('v/ä+1')}`)).agents),
    ).toEqual([ids[5]])
    expect((await list('?label.parity=neither')).agents).toEqual([])
    expect((await list('?label.absent=')).agents).toEqual([])
  })

  it('combines several filters with AND', async () => {
    const agents = await walk('label.parity=odd&model=svc-3.1-pro&pageSize=5&order=asc')
    expect(idsOf(agents).sort()).toEqual(ids.filter((_, i) => i % 2 === 1 && i % 3 === 0).sort())
  })

  it.each([
    ['order=up', 'order'],
    ['order=', 'order'],
    ['pageSize=0', 'pageSize'],
    ['pageSize=-1', 'pageSize'],
    ['pageSize=101', 'pageSize'],
    ['pageSize=2.5', 'pageSize'],
    ['pageSize=ten', 'pageSize'],
    ['pageSize=1&pageSize=2', 'pageSize'],
    ['pageToken=abc', 'pageToken'],
    ['pageToken=%00', 'pageToken'],
    [`pageToken=${Buffer.from('{"id":1}').toString('base64url')}`, 'pageToken'],
  ])('refuses %s with 400 and names the parameter', async (query, param) => {
    const answer = await server.get(`/v1beta/agents?${query}`)
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param })
  })

  it('refuses the same parameters in the list of versions', async () => {
    for (const [query, param] of [
      ['pageSize=0', 'pageSize'],
      ['pageToken=abc', 'pageToken'],
    ]) {
      const answer = await server.get(`/v1beta/agents/${ids[0]}/versions?${query}`)
      expect(answer.status, answer.text).toBe(400)
      expect(errorOf(answer).param).toBe(param)
    }
  })

  it('is empty for a project without agents', async () => {
    const key = await server.createKey('empty')
    expect(await list('', key)).toEqual({ agents: [] })
  })
})

describe('paging through the list', () => {
  it('is not disturbed by agents that are created or deleted between pages', async () => {
    let count = 0
    const doomed = ids[20]!
    const agents = await walk('pageSize=9&order=desc', async (so) => {
      count++
      await server.post('/v1beta/agents', { displayName: `late ${count}` })
      // This agent is the last one of the page, so the next page starts after it.
      if (count === 1) await server.request('DELETE', `/v1beta/agents/${so.at(-1)}`)
      if (count === 2) await server.request('DELETE', `/v1beta/agents/${doomed}`)
    })
    const seen = idsOf(agents)
    expect(new Set(seen).size).toBe(seen.length)
    expect(new Set(seen)).toEqual(new Set(ids.filter((id) => id !== doomed)))
  })
})
