/**
 * Checks input files by s3:// and gs:// addresses: the server reads them with the operator's credentials, only from
 * allowed buckets.
 */
import { createHash, generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { AwsV4Signer } from 'aws4fetch'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type ObjectStore, openObjectStore } from '../support/object-store.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { bash, toolRunner } from '../support/tool-run.ts'

const FILE_BYTES = 4 * 1024 * 1024
const PATH = '/v1beta/interactions'
const ODD = "in/a b+c/ü & = %20 # ? ' (1).csv"
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

let provider: FakeProvider
let store: ObjectStore
let google: HttpServer
let googleSays: RequestListener
let home: string
let client: S3Client
let server: Server
let config: Record<string, unknown>
const env = { READER_ID: 'S3RVER', READER_KEY: 'S3RVER' }
beforeAll(async () => {
  provider = await openFakeProvider()
  store = await openObjectStore('open', 'shared', 'secret')
  home = await mkdtemp(join(tmpdir(), 'errand-google-'))
  google = createServer((request, response) => googleSays(request, response))
  await new Promise<void>((resolve) => google.listen(0, '127.0.0.1', resolve))
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const account = { type: 'service_account', client_email: 'reader@errand.example', private_key: pem }
  await writeFile(join(home, 'google.json'), JSON.stringify(account))
  client = new S3Client({
    endpoint: store.url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  })
  await put('open', 'a.csv', 'a,b\n1,2\n')
  await put('open', ODD, 'odd')
  await put('open', 'big.bin', Buffer.alloc(FILE_BYTES, 7))
  await put('open', 'bigger.bin', Buffer.alloc(FILE_BYTES + 1))
  await put('shared', 'in/a.csv', 'shared')
  await put('shared', 'inside.csv', 'not below in/')
  await put('secret', 'a.csv', 'secret')
  config = {
    files: {
      s3: {
        endpoint: store.url,
        accessKeyIdEnv: 'READER_ID',
        secretAccessKeyEnv: 'READER_KEY',
        allow: ['open', 'shared/in'],
      },
      gs: {
        endpoint: `http://127.0.0.1:${(google.address() as AddressInfo).port}`,
        credentialsFile: join(home, 'google.json'),
        allow: { '*': ['google'] },
      },
    },
    limits: { fileBytes: FILE_BYTES, interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 },
    log: 'debug',
  }
  server = await startServer({ provider, config, env })
})
beforeEach(() => {
  store.door = checkSignature
})
afterAll(async () => {
  await server?.stop()
  client.destroy()
  google.close()
  await store?.close()
  await provider?.close()
  await rm(home, { recursive: true, force: true })
})

/**
 * Verifies signatures as Amazon's servers do, with a second implementation of signature version 4. s3rver itself
 * accepts every signature.
 */
async function checkSignature(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  const url = new URL(request.url!, store.url)
  const given = url.searchParams.get('X-Amz-Signature')
  const [, , region] = url.searchParams.get('X-Amz-Credential')?.split('/') ?? []
  const datetime = url.searchParams.get('X-Amz-Date') ?? undefined
  url.searchParams.delete('X-Amz-Signature')
  const keys = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
  const signer = new AwsV4Signer({ ...keys, url: url.href, service: 's3', region, datetime, signQuery: true })
  const expected = (await signer.sign()).url.searchParams.get('X-Amz-Signature')
  if (given === expected) return false
  response.writeHead(403).end()
  return true
}

const run = toolRunner(
  () => server,
  () => provider,
)
const put = (Bucket: string, Key: string, Body: string | Uint8Array) =>
  client.send(new PutObjectCommand({ Bucket, Key, Body }))

const get = (url: string, from = server): Promise<Answer> =>
  from.post(PATH, { instruction: 'x', files: [{ name: 'in.csv', url }] })

describe('an input file by s3://', () => {
  it('is in the working directory, whatever its key', async () => {
    const files = [
      { name: 'a.csv', url: 's3://open/a.csv' },
      { name: 'odd.csv', url: `s3://open/${ODD}` },
      { name: 'big.bin', url: 'S3://open/big.bin' },
      { name: 'shared.csv', url: 's3://shared/in/a.csv' },
    ]
    const { answer, body, outputs } = await run([bash('cat a.csv odd.csv shared.csv; wc -c big.bin')], { files })
    expect(answer.status, answer.text).toBe(200)
    expect(outputs[0]).toContain(`a,b\n1,2\noddshared${FILE_BYTES} big.bin`)
    expect(body.status).toBe('completed')
  })

  it('is fetched with a signed address, which is never shown or stored', async () => {
    let signed = ''
    store.door = (request, response) => {
      signed = request.url!
      return checkSignature(request, response)
    }
    const { answer, body } = await run([bash('cat a.csv')], { files: [{ name: 'a.csv', url: 's3://open/a.csv' }] })
    expect(answer.status, answer.text).toBe(200)
    const signature = new URL(signed, store.url).searchParams.get('X-Amz-Signature')!
    expect(signature).toMatch(/^[0-9a-f]{64}$/)
    const rowsOf = (columns: string, table: string) =>
      server.stored.query(`select ${columns} from ${table} where interaction_id = ?`, body.interactionId)
    const tables = await Promise.all(['specs', 'events', 'turns', 'audit'].map((table) => rowsOf('*', table)))
    const rows = tables.map((found) => JSON.stringify(found))
    const audit = await rowsOf('kind, host, outcome', 'audit')
    expect(audit).toEqual([{ kind: 'file', host: '127.0.0.1', outcome: 'dialled' }])
    const places = [...rows, answer.text, server.output(), JSON.stringify(provider.requests.at(-1)!.body)]
    for (const text of places) expect(text).not.toMatch(new RegExp(`${signature}|X-Amz|READER_KEY`))
  })

  it('ends the run before the first model call if it is missing or too large', async () => {
    const before = provider.requests.length
    for (const [url, words] of [
      ['s3://open/missing.csv', '404'],
      ['s3://open/bigger.bin', `${FILE_BYTES.toLocaleString('en-US')} bytes`],
    ] as const) {
      const answer = await get(url)
      expect(errorOf(answer)).toMatchObject({ code: 'file_unavailable', status: 400 })
      expect(errorOf(answer).message).toContain(words)
      expect(answer.text).not.toContain('X-Amz')
    }
    expect(provider.requests.length).toBe(before)
  })

  it('does not make the store reachable by http addresses or redirects', async () => {
    expect(errorOf(await get(`${store.url}/open/a.csv`))).toMatchObject({
      code: 'invalid_request',
      param: 'files[0].url',
    })
    store.door = (_, response) => {
      response.writeHead(302, { location: `${store.url}/secret/a.csv` }).end()
      return true
    }
    const answer = await get('s3://open/a.csv')
    expect(errorOf(answer)).toMatchObject({ code: 'file_unavailable' })
    expect(errorOf(answer).message).toContain('redirects to an address that is refused')
    expect(store.asked.filter((line) => line.startsWith('GET /secret'))).toEqual([])
  })

  it.each([
    's3://secret/a.csv',
    's3://secret/missing.csv',
    's3://no-such-bucket/a.csv',
    's3://shared/inside.csv',
    's3://shared/other/a.csv',
    's3://shared/in',
    's3://shared/in/',
    's3://shared/in/../../secret/a.csv',
    's3://shared/in/%2e%2E/inside.csv',
    's3://open/./a.csv',
    's3://open',
    's3://open/',
    's3:///a.csv',
    's3://OPEN/a.csv',
    's3://open@secret/a.csv',
    's3://open:443/a.csv',
    's3://open/a\u0000.csv',
    `s3://open/${'x'.repeat(1025)}`,
    'gs://secret/a.csv',
    'gs://open/a.csv',
  ])('is refused immediately if the address is not allowed: %s', async (url) => {
    const answer = await get(url)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param: 'files[0].url' })
    expect(errorOf(answer)).not.toHaveProperty('interactionId')
  })

  it('is refused with the same message whether or not it exists, if it is not allowed', async () => {
    const [there, missing] = [await get('s3://secret/a.csv'), await get('s3://secret/missing.csv')]
    expect(errorOf(there).message).toBe(errorOf(missing).message)
  })
})

describe('an input file by gs://', () => {
  it('is fetched with a service account’s signature', async () => {
    const asked: URL[] = []
    googleSays = (request, response) => {
      asked.push(new URL(request.url!, `http://${request.headers.host}`))
      response.end('from google')
    }
    const files = [{ name: 'g.txt', url: 'gs://google/deep/g & h.txt' }]
    const { outputs } = await run([bash('cat g.txt')], { files })
    expect(outputs[0]).toContain('from google')
    const [url] = asked
    expect(url!.pathname).toBe('/google/deep/g%20%26%20h.txt')
    expect(url!.searchParams.get('X-Goog-Credential')).toMatch(/^reader@errand\.example\//)
    // Verifies the signature as Google's servers do.
    const [query, signature] = url!.search.slice(1).split('&X-Goog-Signature=')
    const request = ['GET', url!.pathname, query, `host:${url!.host}`, '', 'host', 'UNSIGNED-PAYLOAD'].join('\n')
    const stamp = url!.searchParams.get('X-Goog-Date')!
    const scope = `${stamp.slice(0, 8)}/auto/storage/goog4_request`
    const text = ['GOOG4-RSA-SHA256', stamp, scope, createHash('sha256').update(request).digest('hex')].join('\n')
    expect(verify('RSA-SHA256', Buffer.from(text), publicKey, Buffer.from(signature!, 'hex'))).toBe(true)
  })

  it('is fetched with an HMAC key if one is configured instead', async () => {
    const gs = { endpoint: store.url, accessKeyIdEnv: 'READER_ID', secretAccessKeyEnv: 'READER_KEY', allow: ['open'] }
    const other = await startServer({ provider, env, config: { ...config, files: { gs } } })
    provider.when('[hmac]', { toolCalls: [bash('cat a.csv')] }, { text: 'Done.' })
    const { body } = await other.post(PATH, {
      instruction: '[hmac]',
      tools: ['code_execution'],
      files: [{ name: 'a.csv', url: 'gs://open/a.csv' }],
    })
    expect(JSON.stringify(body.executionTrace)).toContain('a,b')
    expect(store.asked.at(-1)).toMatch(/^GET \/open\/a\.csv\?.*auto%2Fs3%2Faws4_request/)
    expect(errorOf(await get('s3://open/a.csv', other))).toMatchObject({ param: 'files[0].url' })
    await other.stop()
  })
})

describe('an operator', () => {
  it('can allow a bucket for one project only', async () => {
    const { stdout: key, stderr } = await server.errand(['keys', 'create', '--name', 'k', '--project', 'chosen'])
    const project = /\((prj_\w+)\)/.exec(stderr)![1]!
    const { dataDir } = server
    await server.stop('SIGKILL')
    const files = config.files as Record<string, object>
    const allow = { '*': ['open'], [project]: ['secret'] }
    server = await startServer({
      provider,
      env,
      dataDir,
      key: server.key,
      config: { ...config, files: { ...files, s3: { ...files.s3, allow } } },
    })
    provider.when('[chosen]', { text: 'Done.' })
    const body = { instruction: '[chosen]', files: [{ name: 'a', url: 's3://secret/a.csv' }] }
    expect(errorOf(await server.post(PATH, body))).toMatchObject({ param: 'files[0].url' })
    const chosen = await server.post(PATH, body, { 'x-svc-api-key': key.trim() })
    expect(chosen.status, chosen.text).toBe(200)
    const own = await server.post(PATH, { ...body, files: [{ name: 'a', url: 's3://open/a.csv' }] })
    expect(own.status, own.text).toBe(200)
  })

  it('sees the allowed buckets in the output of the doctor', async () => {
    expect((await server.errand(['doctor'])).stdout).toMatch(/Callers can name files by s3:\/\/ in open, s/)
  })

  it('with a wrong key causes a run error that does not contain the key', async () => {
    const wrong = await startServer({ provider, env: { ...env, READER_KEY: 'wr0ng-key' }, config })
    const answer = await get('s3://open/a.csv', wrong)
    expect(errorOf(answer)).toMatchObject({ code: 'file_unavailable' })
    expect(errorOf(answer).message).toContain('403')
    expect(wrong.output() + answer.text).not.toMatch(/wr0ng-key|X-Amz/)
    await wrong.stop()
  })

  it.each([
    [
      { s3: { allow: ['open'], accessKeyIdEnv: 'READER_ID', secretAccessKeyEnv: 'NOT_SET' } },
      'NOT_SET, which is not set',
    ],
    [{ s3: { allow: ['open'], accessKeyIdEnv: 'READER_ID' } }, 'files.s3.secretAccessKeyEnv is missing'],
    [{ gs: { allow: ['open'] } }, 'files.gs.allow needs files.gs.credentialsFile'],
    [{ gs: { allow: ['open'], credentialsFile: '/nowhere.json' } }, "/nowhere.json, can't be used: ENOENT"],
    [{ s3: { allow: ['Open/'] } }, 'must be a list of buckets'],
    [{ s3: { allow: { team: ['open'] } } }, 'files.s3.allow'],
  ])('gets an error at the start if a setting is missing or invalid: %j', async (files, words) => {
    await expect(startServer({ provider, env, config: { files } })).rejects.toThrow(words)
  })
})
