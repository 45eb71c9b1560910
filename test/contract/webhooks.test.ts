/**
 * Checks `webhook {url}`: a signed request reports the end of an interaction to every address that the egress guard
 * allows.
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Canary, openCanary } from '../egress/canary.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'

interface Sent {
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: string
}

let provider: FakeProvider
let receiver: Canary
let hook: string
let sent: Sent[]
let status = 204
let server: Server
let config: Record<string, unknown>
beforeAll(async () => {
  provider = await openFakeProvider()
  receiver = await openCanary('127.0.0.1', (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => (body += text))
    request.on('end', () => {
      sent.push({ url: request.url!, headers: request.headers as IncomingHttpHeaders & Record<string, string>, body })
      response.writeHead(status).end()
    })
  })
  hook = `http://127.0.0.1:${receiver.port}/hook/t0ken?key=s3cret`
  config = { egress: { allowPrivate: [`127.0.0.1:${receiver.port}`] }, log: 'debug' }
  server = await startServer({ provider, config })
})
beforeEach(() => {
  sent = []
  status = 204
})
afterAll(async () => {
  await server?.stop()
  await receiver?.close()
  await provider?.close()
})

async function deliveriesOf(id: string, from = server) {
  return from.get(`${PATH}/${id}/deliveries`)
}

async function told(id: string, from = server): Promise<Sent> {
  while ((await deliveriesOf(id, from)).body.state !== 'delivered') await new Promise((done) => setTimeout(done, 20))
  return sent.find(({ headers }) => headers['webhook-id'] === id)!
}

describe('the webhook of an interaction', () => {
  it('gets the short interaction at its end, signed with the secret that the operator can show', async () => {
    provider.when('[hooked]', { text: 'Done.' })
    const body = { instruction: '[hooked] p4ssword', webhook: { url: hook }, labels: { team: 'a' } }
    const answer = await server.post(PATH, body)
    expect(answer.status, answer.text).toBe(200)
    const id = answer.body.interactionId
    const { url, headers, body: text } = await told(id)
    expect(url).toBe('/hook/t0ken?key=s3cret')
    const { stdout, stderr, code } = await server.errand(['webhooks', 'secret', '--project', 'default'])
    expect(code, stderr).toBe(0)
    expect(stdout).toMatch(/^whsec_[A-Za-z0-9+/]{43}=\n$/)
    const event = new Webhook(stdout.trim()).verify(text, headers) as Record<string, unknown>
    const { endTime, createTime } = answer.body
    expect(event).toEqual({
      type: 'interaction.completed',
      timestamp: endTime,
      data: {
        interactionId: id,
        id,
        status: 'completed',
        model: 'svc-3.5-flash',
        labels: { team: 'a' },
        stopReason: 'end_turn',
        createTime,
        endTime,
        usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
      },
    })
    expect(headers['api-revision']).toBe('2026-05-20')

    const { body: log } = await deliveriesOf(id)
    expect(log).toEqual({
      state: 'delivered',
      deliveries: [
        { attempt: 1, time: expect.stringMatching(/^\d{4}-.*Z$/), durationMs: expect.any(Number), status: 204 },
      ],
    })
    const places = [JSON.stringify(log), (await server.get(`${PATH}/${id}`)).text, answer.text, server.output(), text]
    for (const place of [...places, await server.stored.text()]) {
      for (const secret of ['t0ken', 's3cret', stdout.trim()]) expect(place.includes(secret)).toBe(false)
    }
    expect(text).not.toContain('p4ssword')
  })

  it('gets a body that matches the API reference', async () => {
    provider.when('[described]', { text: 'Done.' })
    const answer = await server.post(PATH, { instruction: '[described]', webhook: { url: hook } })
    const { body } = await told(answer.body.interactionId)
    const { components, webhooks } = (await server.get('/openapi.json')).body
    const { schema } = webhooks.interactionEnded.post.requestBody.content['application/json']
    const ajv = new Ajv2020({ strict: false, schemas: [{ $id: 'api', components }] })
    addFormats.default(ajv)
    const valid = ajv.compile({ $ref: `api${schema.$ref}` })
    expect(valid(JSON.parse(body)), JSON.stringify(valid.errors)).toBe(true)
    expect(valid({ ...JSON.parse(body), type: 'interaction.started' })).toBe(false)
  })

  it('is verified by the code in the documentation', async () => {
    provider.when('[documented]', { text: 'Done.' })
    const answer = await server.post(PATH, { instruction: '[documented]', webhook: { url: hook } })
    const { headers, body } = await told(answer.body.interactionId)
    const secret = (await server.errand(['webhooks', 'secret', '--project', 'default'])).stdout.trim()
    const text = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
    const block = (file: string) => new RegExp(`\`\`\`\\w+ file=${file}\\n(.*?)\`\`\``, 's').exec(text)![1]!
    const { isFromErrand } = await import(`data:text/javascript,${encodeURIComponent(block('is-from-errand.mjs'))}`)
    const inPython = (content: string, key: string) => {
      const program = `${block('is_from_errand.py')}\nimport json, sys\nheaders, body, secret = json.load(sys.stdin)\nprint(is_from_errand(headers, body.encode(), secret))`
      return execFileSync('python3', ['-c', program], {
        input: JSON.stringify([headers, content, key]),
        encoding: 'utf8',
      })
    }
    const wrong = `whsec_${Buffer.alloc(32).toString('base64')}`
    for (const [content, key, good] of [
      [body, secret, true],
      [`${body} `, secret, false],
      [body, wrong, false],
    ] as const) {
      expect(isFromErrand(headers, content, key)).toBe(good)
      expect(inPython(content, key).trim()).toBe(good ? 'True' : 'False')
    }
    expect(isFromErrand({ ...headers, 'webhook-timestamp': '1' }, body, secret)).toBe(false)
  })

  it('also reports failures and cancellations', async () => {
    provider.when('[broken]', { fault: 'status:400' })
    const failed = await server.post(PATH, { instruction: '[broken]', webhook: { url: hook } })
    const { interactionId } = errorOf(failed)
    expect(JSON.parse((await told(interactionId!)).body)).toMatchObject({
      type: 'interaction.failed',
      data: { status: 'failed', error: { code: 'model_error' } },
    })
    provider.when('[long]', { hold: new Promise(() => {}), text: 'never' })
    const { body } = await server.post(PATH, { instruction: '[long]', background: true, webhook: { url: hook } })
    expect((await deliveriesOf(body.interactionId)).body).toEqual({ state: 'pending', deliveries: [] })
    await server.post(`${PATH}/${body.interactionId}:cancel`)
    expect(JSON.parse((await told(body.interactionId)).body)).toMatchObject({
      type: 'interaction.cancelled',
      data: { status: 'cancelled' },
    })
  })

  it('is delivered once if the request was sent twice with one idempotency key', async () => {
    provider.when('[once]', { text: 'Done.' })
    const body = { instruction: '[once]', webhook: { url: hook } }
    const headers = { 'idempotency-key': 'once' }
    const [one, two] = [await server.post(PATH, body, headers), await server.post(PATH, body, headers)]
    expect(two.body.interactionId).toBe(one.body.interactionId)
    await told(one.body.interactionId)
    expect(sent).toHaveLength(1)
  })

  it('shows its attempts only to its own project, and an empty list without a webhook', async () => {
    provider.when('[plain]', { text: 'Done.' })
    const { body } = await server.post(PATH, { instruction: '[plain]' })
    expect((await deliveriesOf(body.interactionId)).body).toEqual({ deliveries: [] })
    const stranger = { 'x-svc-api-key': await server.createKey('stranger') }
    const theirs = await server.get(`${PATH}/${body.interactionId}/deliveries`, stranger)
    const nobodys = await server.get(`${PATH}/int_none/deliveries`, stranger)
    expect(errorOf(theirs)).toMatchObject({ status: 404, code: 'not_found' })
    expect(errorOf(theirs).message.replace(body.interactionId, 'int_none')).toBe(errorOf(nobodys).message)
  })

  it('is delivered after a restart if the server was killed before delivery', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'errand-webhooks-'))
    const first = await startServer({ provider, config, dataDir })
    status = 500
    provider.when('[kept]', { text: 'Done.' })
    const { body } = await first.post(PATH, { instruction: '[kept]', webhook: { url: hook } })
    while (sent.length === 0) await new Promise((done) => setTimeout(done, 10))
    while ((await deliveriesOf(body.interactionId, first)).body.deliveries.length === 0);
    await first.stop('SIGKILL')
    status = 200
    const second = await startServer({ provider, dataDir, key: first.key })
    const { body: log } = await deliveriesOf(body.interactionId, second)
    expect(log).toMatchObject({ state: 'pending', nextAttemptTime: expect.any(String), deliveries: [{ status: 500 }] })
    await told(body.interactionId, second)
    expect(sent.map(({ headers }) => headers['webhook-id'])).toEqual([body.interactionId, body.interactionId])
    await second.stop()
    await rm(dataDir, { recursive: true, force: true })
  })
})

describe('a webhook address that is refused by its form', () => {
  it.each([
    'https://127.0.0.1/hook',
    'https://2130706433/hook',
    'https://[::1]/hook',
    'https://[::ffff:169.254.169.254]/latest/meta-data/',
    'https://localhost/hook',
    'https://10.0.0.1/hook',
    'http://hooks.example.com/',
    'https://hooks.example.com:8443/',
    'https://user:password@hooks.example.com/',
    's3://bucket/key',
    'file:///etc/passwd',
    'nonsense',
  ])('returns 400 and creates no interaction: %s', async (url) => {
    const before = (await server.get(PATH)).body.interactions.length
    const answer = await server.post(PATH, { instruction: 'x', webhook: { url } })
    expect(errorOf(answer)).toMatchObject({ status: 400, code: 'invalid_request', param: 'webhook.url' })
    expect((await server.get(PATH)).body.interactions.length).toBe(before)
  })
})

it('a project that does not exist has no webhook secret', async () => {
  const { code, stdout, stderr } = await server.errand(['webhooks', 'secret', '--project', 'nobody'])
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain('There is no project "nobody"')
})
