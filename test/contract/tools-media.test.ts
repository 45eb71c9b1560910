/** What `file_read` shows a model that sees: images and PDFs, at the model's own wire; and that a crash loses none of it. */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider, type RecordedRequest } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

/** One pixel, red. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

let provider: FakeProvider
let server: Server

beforeEach(async () => {
  provider = await openFakeProvider()
})

afterEach(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
})

function seeing(more: object = {}) {
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', vision: true, ...more }
  return { config: { models: { 'svc-3.5-flash': model } }, env: { ERRAND_LEASE_S: '2' } }
}

const read = (path: string, more: object = {}) => ({ toolCalls: [{ name: 'file_read', args: { path, ...more } }] })

/** What a request shows beside its text, in order. */
function shownIn({ body }: RecordedRequest): { type: string; url: string }[] {
  return body.messages.flatMap(({ content }) =>
    typeof content === 'string' || content === null
      ? []
      : content.flatMap((part) => {
          const { type, image_url, file } = part as {
            type: string
            image_url?: { url: string }
            file?: { file_data: string }
          }
          return type === 'text' ? [] : [{ type, url: image_url?.url ?? file!.file_data }]
        }),
  )
}

test('an image is shown again to the model after its server died, and goes with the interaction', async () => {
  server = await startServer({ provider, ...seeing() })
  const { promise: hold, resolve: release } = Promise.withResolvers<void>()
  provider.when('[look]', read('dot.png'), [{ hold, text: 'never' }, { text: 'It is red.' }])
  const file = { name: 'dot.png', content: PNG, encoding: 'base64' }
  const { body } = await server.post('/v1beta/interactions', {
    instruction: '[look]',
    tools: ['file_read'],
    files: [file],
    background: true,
  })
  const id = body.interactionId
  await provider.received(2)
  const { dataDir, key } = server
  await server.stop('SIGKILL')
  server = await startServer({ provider, dataDir, key, env: { ERRAND_LEASE_S: '2' } })
  await (await server.stream(`/v1beta/interactions/${id}:stream`)).all()
  release()
  expect((await server.get(`/v1beta/interactions/${id}`)).body).toMatchObject({
    status: 'completed',
    output: 'It is red.',
  })
  const image = { type: 'image_url', url: `data:image/png;base64,${PNG}` }
  expect(provider.requests.slice(1).map(shownIn)).toEqual([[image], [image]])
  expect(existsSync(join(dataDir, 'blobs', id))).toBe(true)
  expect((await server.request('DELETE', `/v1beta/interactions/${id}`)).status).toBe(200)
  expect(existsSync(join(dataDir, 'blobs', id))).toBe(false)
})
