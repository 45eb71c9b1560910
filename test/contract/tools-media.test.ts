/**
 * Checks what `file_read` shows a model with vision: images and PDFs, as the model's API receives them, also after a
 * crash.
 */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { imageDimensionsFromData } from 'image-dimensions'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { type FakeProvider, openFakeProvider, type RecordedRequest } from '../fake-provider.ts'
import { pdfOf } from '../support/pdf.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, type Call, python, readFile, toolRunner } from '../support/tool-run.ts'

/** A PNG image of one red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const DOT = { name: 'dot.png', content: PNG, encoding: 'base64' }
const LEASE = { ERRAND_LEASE_S: '2' }

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' }
  const models = {
    seeing: { ...model, vision: true },
    reading: { ...model, vision: true, documents: true },
    blind: model,
  }
  server = await startServer({ provider, config: { models, sandbox: { pool: 0, memoryMiB: 1024 } }, env: LEASE })
})
afterAll(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
})

interface Shown {
  readonly type: string
  readonly mimeType: string
  readonly bytes: Buffer
}

/** Returns the images and documents in a request, in order. */
function shownIn({ body }: RecordedRequest): Shown[] {
  interface Part {
    readonly type: string
    readonly image_url?: { readonly url: string }
    readonly file?: { readonly file_data: string }
  }
  const parts = body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : ((content ?? []) as Part[])))
  return parts.flatMap(({ type, image_url, file }) => {
    const [, mimeType, base64] = /^data:(.*);base64,(.*)$/.exec(image_url?.url ?? file?.file_data ?? '') ?? []
    return base64 === undefined ? [] : [{ type, mimeType: mimeType!, bytes: Buffer.from(base64, 'base64') }]
  })
}

const run = toolRunner(
  () => server,
  () => provider,
)

/** Runs each call in a turn of its own. Returns their results and what the last request showed the model. */
async function look(model: string, calls: Call[], files: object[]) {
  const { body, outputs } = await run(calls, { model, files })
  expect(body, JSON.stringify(body)).toMatchObject({ status: 'completed', output: 'Done.' })
  return { outputs, shown: shownIn(provider.requests.at(-1)!) }
}

describe('a PDF', () => {
  const bytes = pdfOf('Alpha speaks', 'Beta speaks', 'Gamma speaks')
  const file = { name: 'in/a report.pdf', content: bytes.toString('base64'), encoding: 'base64' }

  it('is sent whole to a model that accepts documents', async () => {
    const { outputs, shown } = await look('reading', [readFile(file.name)], [file])
    expect(shown).toEqual([{ type: 'file', mimeType: 'application/pdf', bytes }])
    expect(outputs[0]).toContain(`3 pages, ${bytes.length} bytes`)
  })

  it('is sent as images of its pages to a model with vision, or if only some pages are requested', async () => {
    const { outputs, shown } = await look('seeing', [readFile(file.name), readFile(file.name, { pages: '2-' })], [file])
    expect(outputs[0]).toContain('pages 1-3 are shown')
    expect(outputs[1]).toContain('pages 2-3 are shown')
    expect(shown.map(({ type, mimeType }) => [type, mimeType])).toEqual(Array(5).fill(['image_url', 'image/jpeg']))
    expect(imageDimensionsFromData(shown[0]!.bytes)).toMatchObject({ width: 1568, height: 784 })
    // The second page is the same image in both results, and differs from the first.
    expect(shown[3]!.bytes.equals(shown[1]!.bytes)).toBe(true)
    expect(shown[0]!.bytes.equals(shown[1]!.bytes)).toBe(false)
    const asked = await look('reading', [readFile(file.name, { pages: '3' })], [file])
    expect(asked.outputs[0]).toContain('page 3 is shown')
    expect(asked.shown.map(({ bytes }) => bytes.equals(shown[2]!.bytes))).toEqual([true])
  })

  it('is sent as text, page by page, to a model without vision', async () => {
    const calls = [readFile(file.name), readFile(file.name, { pages: '2' }), readFile(file.name, { pages: '4' })]
    const { outputs, shown } = await look('blind', calls, [file])
    expect(shown).toEqual([])
    expect(outputs[0]).toMatch(/3 pages[\s\S]*--- page 1 ---\s+Alpha speaks[\s\S]*--- page 3 ---\s+Gamma speaks/)
    expect(outputs[1]).toMatch(/page 2[\s\S]*Beta speaks/)
    expect(outputs[1]).not.toMatch(/Alpha|Gamma/)
    expect(outputs[2]).toContain('there is no page 4')
  })

  it('of many pages is shown in parts, with how to continue', async () => {
    const long = pdfOf(...Array.from({ length: 120 }, (_, i) => `Leaf ${i + 1}`))
    const files = [{ name: 'long.pdf', content: long.toString('base64'), encoding: 'base64' }]
    const { outputs, shown } = await look('reading', [readFile('long.pdf')], files)
    expect(shown).toHaveLength(10)
    expect(outputs[0]).toContain('Continue with pages "11-120"')
  })

  it('that is invalid or has no text is reported as such, and so is an invalid range of pages', async () => {
    const scanned = { name: 'scan.pdf', content: pdfOf('').toString('base64'), encoding: 'base64' }
    const broken = { name: 'broken.pdf', content: '%PDF-1.7\nnothing of it is true' }
    const { outputs, shown } = await look(
      'blind',
      [readFile(scanned.name), readFile(broken.name), readFile(file.name, { pages: 'two' })],
      [scanned, broken, file],
    )
    expect(outputs[0]).toMatch(/without text/)
    expect(outputs[1]).toMatch(/can't be read/)
    expect(outputs[2]).toMatch(/`pages` must be a page or a range/)
    expect(shown).toEqual([])
    expect((await look('reading', [readFile(broken.name)], [broken])).shown).toEqual([])
  })
})

describe('an image', () => {
  it('is sent unchanged if it is small enough', async () => {
    const { outputs, shown } = await look('seeing', [readFile(DOT.name)], [DOT])
    expect(shown).toEqual([{ type: 'image_url', mimeType: 'image/png', bytes: Buffer.from(PNG, 'base64') }])
    expect(outputs[0]).toContain('1 × 1')
  })

  it('is scaled down if it is too large for a provider, with a note', async () => {
    const make = python(`from PIL import Image
Image.new("RGB", (4000, 1000), "red").save("wide.png")
Image.effect_noise((1800, 1800), 100).convert("RGBA").save("heavy.png")
Image.new("RGB", (100, 3000), "blue").save("high.jpg", exif=b"Exif\\0\\0MM\\0*\\0\\0\\0\\x08\\0\\x01\\x01\\x12\\0\\x03\\0\\0\\0\\x01\\0\\x06\\0\\0\\0\\0\\0\\0")`)
    const { outputs, shown } = await look(
      'seeing',
      [make, ...['wide.png', 'heavy.png', 'high.jpg'].map((name) => readFile(name))],
      [],
    )
    expect(outputs[1]).toMatch(/4000 × 1000, .* shown here at 1568 × 392/)
    expect(shown.map(({ bytes }) => imageDimensionsFromData(bytes))).toMatchObject([
      { width: 1568, height: 392 },
      { width: 1568, height: 1568 },
      // Its metadata says that it must be rotated.
      { width: 1568, height: 52 },
    ])
  })

  it('that cannot be scaled down is reported with what to do', async () => {
    const header = bash(
      `printf '\\x89PNG\\r\\n\\x1a\\n\\0\\0\\0\\rIHDR\\0\\0\\xff\\xff\\0\\0\\xff\\xff\\x08\\x02\\0\\0\\0' > bomb.png`,
    )
    const { outputs, shown } = await look('seeing', [header, readFile('bomb.png')], [])
    expect(outputs[1]).toMatch(/65535 × 65535.*more than can be shown.*Scale it down/)
    expect(shown).toEqual([])
  })

  it('is described to a model without vision', async () => {
    const { outputs, shown } = await look('blind', [readFile(DOT.name)], [DOT])
    expect(outputs[0]).toMatch(/image\/png.*This model can't be shown images/)
    expect(shown).toEqual([])
  })

  it('is dropped from the request with other old ones when there are too many, and its result says so', async () => {
    const { outputs, shown } = await look('seeing', Array(25).fill(readFile(DOT.name)), [DOT])
    // The 21st image drops the oldest eleven.
    expect(shown).toHaveLength(14)
    const results = provider.requests.at(-1)!.body.messages.filter(({ role }) => role === 'tool')
    expect(results.map(({ content }) => /It is no longer shown here/.test(String(content)))).toEqual([
      ...Array(11).fill(true),
      ...Array(14).fill(false),
    ])
    // The trace keeps the original result of the tool.
    for (const output of outputs) expect(output).toMatch(/it is shown here\.$/)
  })
})

test('an image that a provider refuses does not end the run: the model gets a note and continues', async () => {
  const refused = { fault: 'status:400', errorMessage: 'Could not process image' } as const
  const looks = { toolCalls: [{ name: 'file_read', args: { path: DOT.name } }] }
  provider.when('[refused]', looks, [refused, { text: 'It is damaged.' }])
  const request = { model: 'seeing', instruction: '[refused]', tools: ['file_read'], files: [DOT] }
  const { body } = await server.post('/v1beta/interactions', request)
  expect(body).toMatchObject({ status: 'completed', output: 'It is damaged.' })
  const [shown, told] = provider.requests.slice(-2)
  expect([shownIn(shown!).length, shownIn(told!).length]).toEqual([1, 0])
  expect(told!.body.messages.at(-1)!.content).toMatch(/refused to show it/)
  provider.when('[refused for ever]', looks, refused)
  const again = await server.post('/v1beta/interactions', { ...request, instruction: '[refused for ever]' })
  expect(again.body.error.message).toContain('Could not process image')
})

test('an image that an interaction showed is shown to those that continue the conversation', async () => {
  const { body: first } = await run([readFile(DOT.name)], { model: 'seeing', files: [DOT] })
  const { body: blind } = await run([], { model: 'blind', previousInteractionId: first.interactionId })
  expect(blind.status).toBe('completed')
  expect(shownIn(provider.requests.at(-1)!)).toEqual([])
  const { body: second } = await run([], { model: 'seeing', previousInteractionId: first.interactionId })
  expect(shownIn(provider.requests.at(-1)!).map(({ mimeType }) => mimeType)).toEqual(['image/png'])
  await run([], { model: 'seeing', previousInteractionId: second.interactionId })
  const request = provider.requests.at(-1)!
  expect(shownIn(request).map(({ mimeType }) => mimeType)).toEqual(['image/png'])
})

test('an image is shown again after the server died, and is deleted with the interaction', async () => {
  const { promise: hold, resolve: release } = Promise.withResolvers<void>()
  const read = { toolCalls: [{ name: 'file_read', args: { path: DOT.name } }] }
  provider.when('[look]', read, [{ hold, text: 'never' }, { text: 'It is red.' }])
  const before = provider.requests.length
  const body = { model: 'seeing', instruction: '[look]', tools: ['file_read'], files: [DOT], background: true }
  const id = (await server.post('/v1beta/interactions', body)).body.interactionId
  await provider.received(before + 2)
  const { dataDir, key } = server
  await server.stop('SIGKILL')
  server = await startServer({ provider, dataDir, key, env: LEASE })
  await (await server.stream(`/v1beta/interactions/${id}:stream`)).all()
  release()
  const got = (await server.get(`/v1beta/interactions/${id}`)).body
  expect(got).toMatchObject({ status: 'completed', output: 'It is red.' })
  const image = { type: 'image_url', mimeType: 'image/png', bytes: Buffer.from(PNG, 'base64') }
  expect(provider.requests.slice(before + 1).map(shownIn)).toEqual([[image], [image]])
  expect(existsSync(join(dataDir, 'blobs', id))).toBe(true)
  expect((await server.request('DELETE', `/v1beta/interactions/${id}`)).status).toBe(200)
  expect(existsSync(join(dataDir, 'blobs', id))).toBe(false)
})
