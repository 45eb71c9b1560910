/** Checks input files by URL. The tests serve them on loopback, which the operator's configuration allows. */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { auditOf } from '../support/audit.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { bash, scripted, toolRunner } from '../support/tool-run.ts'
import { checkEnded, ended } from './invariants.ts'

const FILE_BYTES = 8 * 1024 * 1024
const PATH = '/v1beta/interactions'

const pages = new Map<string, (response: ServerResponse) => void>()
const asked: string[] = []
let atOnce = 0
let most = 0
let files: HttpServer
let origin: string
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  files = createServer((request, response) => {
    asked.push(request.url!)
    most = Math.max(most, ++atOnce)
    response.on('close', () => atOnce--)
    const page = pages.get(request.url!.split('?')[0]!)
    if (page) page(response)
    else response.writeHead(404).end('nothing here')
  })
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve))
  const address = `127.0.0.1:${(files.address() as AddressInfo).port}`
  origin = `http://${address}`
  provider = await openFakeProvider()
  server = await startServer({
    provider,
    config: {
      egress: { allowPrivate: [address] },
      limits: { fileBytes: FILE_BYTES, interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 },
      sandbox: { pool: 0, workspaceMiB: 32 },
      log: 'debug',
    },
  })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  files.close()
  files.closeAllConnections()
})

const run = toolRunner(
  () => server,
  () => provider,
)

/** Serves these bytes at a new path. Returns the address. */
function serve(bytes: string | Uint8Array, path = `/${pages.size}`): string {
  pages.set(path, (response) => response.end(bytes))
  return origin + path
}

/** Asserts that a run fails because its file is unavailable, before any model call. */
async function unavailable(url: string): Promise<{ answer: Answer; message: string }> {
  const before = provider.requests.length
  const answer = await server.post(PATH, { instruction: 'x', files: [{ name: 'in/a.csv', url }] })
  expect(answer.status, answer.text).toBe(400)
  const error = errorOf(answer)
  expect(error).toMatchObject({ code: 'file_unavailable', retryable: false, interactionId: expect.any(String) })
  expect(error.message).toMatch(/^The input file "in\/a\.csv" could not be fetched\. /)
  expect(provider.requests.length).toBe(before)
  const seen = await server.get(`${PATH}/${error.interactionId}`)
  expect(seen.body).toMatchObject({ status: 'failed', error: { code: 'file_unavailable' } })
  return { answer, message: error.message }
}

describe('an input file by URL', () => {
  it('is in the working directory with the inline files before the first tool call, byte for byte', async () => {
    const bytes = Buffer.from(Uint8Array.from({ length: FILE_BYTES }, (_, i) => (i * 31 + (i >> 8)) % 256))
    const { answer, outputs } = await run([bash('sha256sum data/big.bin inline.txt empty')], {
      files: [
        { name: 'data/big.bin', url: serve(bytes), mimeType: 'application/octet-stream' },
        { name: 'inline.txt', content: 'inline' },
        { name: 'empty', url: serve('') },
      ],
    })
    expect(answer.status, answer.text).toBe(200)
    const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex')
    expect(outputs[0]).toContain(`${sha256(bytes)}  data/big.bin`)
    expect(outputs[0]).toContain(`${sha256('inline')}  inline.txt`)
    expect(outputs[0]).toContain(`${sha256('')}  empty`)
    const prompt = JSON.stringify(provider.requests.at(-1)!.body.messages)
    expect(prompt).toContain('data/big.bin (8,388,608 bytes)')
    expect(prompt).toContain('empty (0 bytes)')
  })

  it('follows redirects and records every host in the audit, which is deleted with the interaction', async () => {
    const place = serve('arrived')
    pages.set('/moved', (response) =>
      response.writeHead(302, { location: place.replace('127.0.0.1', 'localhost') }).end(),
    )
    const { body, outputs } = await run([bash('cat a.txt')], { files: [{ name: 'a.txt', url: `${origin}/moved` }] })
    expect(outputs[0]).toContain('arrived')
    // The configuration allows only 127.0.0.1 with this port; localhost resolves to that address.
    const port = Number(new URL(origin).port)
    const entry = { kind: 'file', port, outcome: 'dialled', count: 1 }
    expect(await auditOf(server, body.interactionId)).toEqual([
      { ...entry, host: '127.0.0.1' },
      { ...entry, host: 'localhost' },
    ])
    expect((await server.request('DELETE', `${PATH}/${body.interactionId}`)).status).toBe(200)
    expect((await server.get(`${PATH}/${body.interactionId}/audit`)).status).toBe(404)
    expect(await server.stored.query('select * from audit where interaction_id = ?', body.interactionId)).toEqual([])
  })

  it('is fetched in the provisioning stage, and its address is never shown or stored', async () => {
    provider.when('[signed]', { text: 'Done.' })
    const url = `${serve('x', '/signed.csv')}?X-Signature=s3cret`
    const body = { instruction: '[signed]', tools: ['code_execution'], files: [{ name: 'a.csv', url }] }
    const stream = await server.stream(`${PATH}:stream`, body)
    const id = stream.headers.get('x-interaction-id')
    const events = await stream.all()
    const stages = events.filter(({ event }) => event === 'stage').map(({ data }) => data.stage)
    expect(stages.slice(0, 4)).toEqual(['queued', 'working', 'provisioning', 'working'])
    expect(events.at(-1)?.data.status).toBe('completed')
    expect(asked).toContain('/signed.csv?X-Signature=s3cret')
    const [row] = await server.stored.query('select spec from specs where interaction_id = ?', id)
    const spec = row!.spec as string
    expect(JSON.parse(spec)).toMatchObject({ inputFiles: [{ name: 'a.csv', size: 1, mimeType: 'text/csv' }] })
    const places = [JSON.stringify(events), (await server.get(`${PATH}/${id}`)).text, spec, server.output()]
    places.push(JSON.stringify(provider.requests.at(-1)!.body))
    for (const text of places) expect(text).not.toMatch(/s3cret|signed\.csv/)
  })

  it('is fetched at most four at a time with the others', async () => {
    most = 0
    pages.set('/slow', (response) => setTimeout(() => response.end('slow'), 30))
    const many = Array.from({ length: 12 }, (_, i) => ({ name: `${i}.txt`, url: `${origin}/slow` }))
    const { outputs } = await run([bash('cat *.txt | wc -c')], { files: many })
    expect(outputs[0]).toContain('48')
    expect(most).toBe(4)
  })

  it('is shown to the model with name and size even if no tool can read it', async () => {
    provider.when('[no tools]', { text: 'Done.' })
    const answer = await server.post(PATH, { instruction: '[no tools]', files: [{ name: 'a.txt', url: serve('abc') }] })
    expect(answer.status, answer.text).toBe(200)
    expect(JSON.stringify(provider.requests.at(-1)!.body)).toContain('a.txt (3 bytes)')
  })
})

describe('a run whose input file is unavailable ends before the first model call', () => {
  it('because the server returns an error', async () => {
    expect((await unavailable(`${origin}/missing?token=s3cret`)).message).toContain('404')
    pages.set('/partial', (response) => response.writeHead(206).end('part'))
    expect((await unavailable(`${origin}/partial`)).message).toContain('206')
    expect(server.output()).not.toContain('s3cret')
  })

  it('because the file is too large, with or without a declared length', async () => {
    const over = Buffer.alloc(FILE_BYTES + 1)
    expect((await unavailable(serve(over))).message).toContain('8,388,608 bytes')
    pages.set('/chunked', (response) => {
      response.write(over.subarray(1))
      response.end('x')
    })
    expect((await unavailable(`${origin}/chunked`)).message).toContain('8,388,608 bytes')
  })

  it('because all files together exceed the workspace', async () => {
    const url = serve(Buffer.alloc(FILE_BYTES))
    const files = Array.from({ length: 5 }, (_, i) => ({ name: `${i}`, url }))
    const answer = await server.post(PATH, { instruction: 'x', files })
    expect(errorOf(answer)).toMatchObject({ code: 'file_unavailable' })
    expect(errorOf(answer).message).toContain('workspace')
  })

  it('because the connection breaks', async () => {
    pages.set('/broken', (response) => {
      response.writeHead(200, { 'content-length': 10 }).write('12345', () => response.destroy())
    })
    await unavailable(`${origin}/broken`)
  })

  it.each([
    'http://127.0.0.1:1/',
    'https://169.254.169.254/latest/meta-data/',
    'http://10.0.0.1/',
    'file:///etc/passwd',
  ])('because it redirects to %s', async (location) => {
    pages.set('/away', (response) => response.writeHead(307, { location }).end())
    expect((await unavailable(`${origin}/away`)).message).toContain('redirects to an address that is refused')
  })

  it('and its stream has an error event, then completed', async () => {
    const body = { instruction: 'x', files: [{ name: 'a', url: `${origin}/missing` }] }
    const events = await (await server.stream(`${PATH}:stream`, body)).all()
    expect(events.slice(-2).map(({ event, data }) => [event, data.code ?? data.status])).toEqual([
      ['error', 'file_unavailable'],
      ['completed', 'failed'],
    ])
  })
})

describe('the operator can limit', () => {
  const bounded = (config: object) =>
    startServer({
      provider,
      config: { egress: { allowPrivate: [new URL(origin).host] }, sandbox: { pool: 0 }, ...config },
    })

  it('the content type of fetched files', async () => {
    const strict = await bounded({ files: { types: ['text/csv', 'image/*'] } })
    const fetched = async (type?: string) => {
      pages.set('/typed', (response) => response.writeHead(200, type ? { 'content-type': type } : {}).end('x'))
      provider.when('[typed]', { text: 'Done.' })
      const files = [{ name: 'a', url: `${origin}/typed` }]
      return strict.post(PATH, { instruction: '[typed]', files })
    }
    for (const type of ['text/csv', 'Text/CSV; charset=utf-8', 'image/png']) {
      expect((await fetched(type)).status, type).toBe(200)
    }
    for (const type of ['text/html', 'text/csvx', 'image', 'imagex/png', undefined]) {
      const error = errorOf(await fetched(type))
      expect(error, type).toMatchObject({ code: 'file_unavailable' })
      expect(error.message).toContain('this server takes text/csv, image/*')
    }
    await strict.stop()
  })

  it('the time that a fetch may take', async () => {
    const hasty = await bounded({ limits: { fileFetchS: 0.5 } })
    pages.set('/dripping', (response) => {
      const drip = setInterval(() => response.write('x'), 50)
      response.on('close', () => clearInterval(drip))
    })
    const answer = await hasty.post(PATH, { instruction: 'x', files: [{ name: 'a', url: `${origin}/dripping` }] })
    expect(errorOf(answer)).toMatchObject({ code: 'file_unavailable' })
    expect(errorOf(answer).message).toContain('0.5 s')
    await hasty.stop()
  })
})

describe('a run that is stopped while it fetches its files', () => {
  it('ends at its deadline', async () => {
    pages.set('/hang', (response) => response.write('first'))
    const body = { instruction: 'x', files: [{ name: 'a', url: `${origin}/hang` }], policy: { maxTurnDuration: 1 } }
    expect(errorOf(await server.post(PATH, body)).code).toBe('deadline_exceeded')
  })

  it('is canceled and closes its connection', async () => {
    pages.set('/hang', (response) => response.write('first'))
    const body = { instruction: 'x', background: true, files: [{ name: 'a', url: `${origin}/hang?2` }] }
    const { interactionId } = (await server.post(PATH, body)).body
    while (!asked.includes('/hang?2')) await new Promise((resolve) => setTimeout(resolve, 5))
    expect((await server.post(`${PATH}/${interactionId}:cancel`)).status).toBe(200)
    while (atOnce > 0) await new Promise((resolve) => setTimeout(resolve, 5))
    expect((await server.get(`${PATH}/${interactionId}`)).body.status).toBe('cancelled')
  })
})

describe('a server that is killed while it fetches', () => {
  it('fetches again after its restart, and the run completes', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'errand-files-'))
    const options = { provider, dataDir, env: { ERRAND_LEASE_S: '1' } }
    const config = { egress: { allowPrivate: [new URL(origin).host] }, sandbox: { pool: 0 } }
    const first = await startServer({ ...options, config })
    pages.set('/later', (response) => response.write('half'))
    const request = { background: true, tools: ['code_execution'], files: [{ name: 'a', url: `${origin}/later` }] }
    const instruction = scripted(provider, [bash('cat a')])
    const { interactionId } = (await first.post(PATH, { instruction, ...request })).body
    while (!asked.includes('/later')) await new Promise((resolve) => setTimeout(resolve, 5))
    await first.stop('SIGKILL')
    pages.set('/later', (response) => response.end('the whole file'))
    const second = await startServer({ ...options, key: first.key })
    await ended(second, interactionId)
    await checkEnded(second, interactionId)
    const { body } = await second.get(`${PATH}/${interactionId}`)
    expect(body).toMatchObject({ status: 'completed', output: 'Done.' })
    expect(JSON.stringify(body.executionTrace)).toContain('the whole file')
    await second.stop()
    await rm(dataDir, { recursive: true, force: true })
  })
})

describe('an address that is refused by its form', () => {
  it.each([
    'https://127.0.0.1/x',
    'https://2130706433/x',
    'https://[::ffff:169.254.169.254]/x',
    'https://user:password@files.example.com/x',
    'https://files.example.com:8443/x',
    'https://exam_ple.com/x',
    'http://files.example.com/x',
    'http://127.0.0.2/x',
    'https://localhost/x',
    's3://bucket/x',
    'gs://bucket/x',
    'data:text/plain,x',
    'nonsense',
  ])('returns 400 and creates no interaction: %s', async (url) => {
    const files = [
      { name: 'good', content: '' },
      { name: 'bad', url },
    ]
    const answer = await server.post(PATH, { instruction: 'x', files })
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param: 'files[1].url' })
    expect(errorOf(answer).message).toContain('files[1].url')
    expect(errorOf(answer)).not.toHaveProperty('interactionId')
  })
})
