/** Checks `GET /v1beta/interactions/{id}/events`, which lists the events of the stream with their times. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  server = await startServer({ provider })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

test('lists the same events as the stream, page by page, in the order of their times', async () => {
  provider.script({ toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }] }, { text: 'It is one.' })
  const { body } = await server.post('/v1beta/interactions', { instruction: 'hello', tools: ['code_execution'] })
  const streamed = await (await server.stream(`/v1beta/interactions/${body.id}:stream`)).all()
  const listed: { id: number; event: string; time: string; data: unknown }[] = []
  for (let token: string | undefined = ''; token !== undefined; ) {
    const page = await server.get(`/v1beta/interactions/${body.id}/events?pageSize=2${token && `&pageToken=${token}`}`)
    expect(page.status).toBe(200)
    listed.push(...page.body.events)
    token = page.body.nextPageToken
  }
  expect(listed.map(({ id, event, data }) => ({ id: String(id), event, data }))).toEqual(
    streamed.map(({ id, event, data }) => ({ id, event, data })),
  )
  const times = listed.map(({ time }) => Date.parse(time))
  expect(times).toEqual([...times].sort((a, b) => a - b))
  expect(times[0]).toBeGreaterThanOrEqual(Date.parse(body.createTime))
})

test('returns 404 for an interaction of another project', async () => {
  provider.script({ text: 'Hi.' })
  const { body } = await server.post('/v1beta/interactions', { instruction: 'hello' })
  const key = await server.createKey('other')
  expect((await server.get(`/v1beta/interactions/${body.id}/events`, { 'x-svc-api-key': key })).status).toBe(404)
})
