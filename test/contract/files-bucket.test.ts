/**
 * Checks the file store in an S3-compatible bucket (`blobsUrl`): interactions work the same, and an outage of the store
 * is handled.
 */
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { newId } from '../../src/domain/ids.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type ObjectStore, openObjectStore, STORE_KEYS } from '../support/object-store.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { python, toolRunner } from '../support/tool-run.ts'

let provider: FakeProvider
let store: ObjectStore
let server: Server
let env: Readonly<Record<string, string>>
beforeAll(async () => {
  provider = await openFakeProvider()
  store = await openObjectStore('errand')
  env = { ...STORE_KEYS, ERRAND_BLOBS_URL: `s3://errand/kept/here?endpoint=${store.url}` }
  server = await startServer({ provider, env })
})
afterEach(() => {
  store.door = undefined
})
afterAll(async () => {
  await server?.stop()
  await store?.close()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)
/** Reads a file from the bucket in the sandbox and writes its reversed bytes to an output file. */
const REVERSE = python(`
import os
os.makedirs('outputs', exist_ok=True)
open('outputs/big.bin', 'wb').write(open('in/big.bin', 'rb').read()[::-1])`)
const BIG = Buffer.from(Uint8Array.from({ length: 7 * 1024 * 1024 }, (_, i) => (i * 31 + (i >> 8)) % 256))
const FILES = { files: [{ name: 'in/big.bin', data: BIG.toString('base64') }] }

it('input and output files go through the bucket, and none are stored on the local disk', async () => {
  const { answer, body } = await run([REVERSE], FILES)
  expect(answer.status, answer.text).toBe(200)
  expect(body.files).toMatchObject([{ name: 'big.bin', size: BIG.length }])
  const [file] = body.files
  const response = await fetch(file.url)
  const bytes = Buffer.from(await response.arrayBuffer())
  expect(bytes.equals(Buffer.from(BIG.toReversed()))).toBe(true)
  expect(file.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-length': String(BIG.length),
    'content-disposition': expect.stringMatching(/^attachment/),
    'content-security-policy': "sandbox; default-src 'none'",
    'x-content-type-options': 'nosniff',
  })
  expect(await readdir(server.dataDir)).not.toContain('blobs')

  const key = `/errand/kept/here/${body.interactionId}/out/0`
  expect(store.asked.filter((line) => line.startsWith(`PUT ${key}`)).length).toBeGreaterThan(1)
  expect((await server.request('DELETE', `/v1beta/interactions/${body.interactionId}`)).status).toBe(200)
  expect((await fetch(file.url)).status).toBe(404)
  expect((await fetch(store.url + key)).status).toBe(404)
})

it('a request whose files cannot be stored gets a retryable 503', async () => {
  store.door = (request) => {
    request.socket.destroy()
    return true
  }
  const refused = await server.post('/v1beta/interactions', { instruction: 'hi', tools: ['code_execution'], ...FILES })
  expect(errorOf(refused)).toMatchObject({ status: 503, code: 'unavailable', retryable: true })
  expect(refused.text).not.toContain('127.0.0.1')
  store.door = undefined
  expect((await run([REVERSE], FILES)).answer.status).toBe(200)
})

it('a run whose store becomes unreachable fails with 503, and its trace so far can be read', async () => {
  let lost = false
  store.door = (request) => {
    lost ||= request.method === 'GET' && request.url!.includes('/in/0')
    if (lost) request.socket.destroy()
    return lost
  }
  const { answer } = await run([REVERSE], FILES)
  expect(errorOf(answer)).toMatchObject({ status: 503, code: 'unavailable', retryable: true })
  store.door = undefined
  const { body } = await server.get(`/v1beta/interactions/${answer.body.error.interactionId}`)
  expect(body).toMatchObject({ status: 'failed', error: { code: 'unavailable' }, files: [] })
  expect(body.executionTrace).toMatchObject([{ type: 'tool_call' }])
})

it('output files that cannot be stored fail the run and are never lost silently', async () => {
  store.door = (request) => {
    const lost = request.url!.includes('/out/')
    if (lost) request.socket.destroy()
    return lost
  }
  const { answer } = await run([REVERSE], FILES)
  expect(errorOf(answer)).toMatchObject({ status: 503, code: 'unavailable', retryable: true })
  expect(errorOf(answer).message).toContain('output files')
})

it('files without an interaction are removed in the background, and no other files are', async () => {
  const client = new S3Client({
    endpoint: store.url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  })
  const { body } = await run([REVERSE], FILES)
  const [old, young] = [newId('int', Date.now() - 7_200_000), newId('int')]
  const kept = [`${young}/in/0`, 'skl_anything/0', `${body.interactionId}/out/0`].map((key) => `kept/here/${key}`)
  for (const Key of [`kept/here/${old}/in/0`, `kept/here/${old}/out/0`, ...kept.slice(0, 2)]) {
    await client.send(new PutObjectCommand({ Bucket: 'errand', Key, Body: 'x' }))
  }
  // The cleanup runs at the start of a server.
  const dataDir = await mkdtemp(join(tmpdir(), 'errand-orphans-'))
  const other = await startServer({ provider, env, dataDir, config: {} })
  const keys = async () => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: 'errand' }))
    return Contents.map(({ Key }) => Key)
  }
  while ((await keys()).some((key) => key!.includes(old))) await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await keys()).toEqual(expect.arrayContaining(kept))
  await other.stop()
  await rm(dataDir, { recursive: true })
  client.destroy()
})

it('a server that cannot write to its bucket reports that and does not start', async () => {
  const dataDir = join(server.dataDir, 'other')
  const missing = { ...env, ERRAND_DATA_DIR: dataDir, ERRAND_BLOBS_URL: `s3://missing?endpoint=${store.url}` }
  await expect(startServer({ provider, env: missing })).rejects.toThrow(/The bucket missing at \S+ can't be used/)
})

it('the configuration check and the doctor show where files are stored', async () => {
  const where = `in the bucket s3://errand/kept/here at ${store.url}`
  expect((await server.errand(['config', 'check'])).stdout).toContain(where)
  expect((await server.errand(['doctor'])).stdout).toContain(`Stored ${where}`)
})
