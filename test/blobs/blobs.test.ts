/** The file store: one suite, on disk and in a bucket of a real S3-compatible server. */
import { copyFile, mkdtemp, readdir, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDiskBlobs } from '../../src/blobs/disk.ts'
import { type Blobs, BlobsUnavailable } from '../../src/blobs/port.ts'
import { openS3Blobs, type S3Location } from '../../src/blobs/s3.ts'
import { type ObjectStore, openObjectStore } from '../support/object-store.ts'

const MIB = 1024 * 1024
const BUCKET = 'errand-files'
const CREDENTIALS = { credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' } }

let directory: string
let store: ObjectStore
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'errand-blobs-'))
  store = await openObjectStore(BUCKET)
})
afterAll(async () => {
  await store?.close()
  await rm(directory, { recursive: true, force: true })
})

function bucket(more: Partial<S3Location> = {}): S3Location {
  return { kind: 's3', bucket: BUCKET, prefix: 'some/prefix', endpoint: store.url, pathStyle: true, ...more }
}

const BACKENDS: Readonly<Record<string, () => Promise<Blobs>>> = {
  disk: () => openDiskBlobs(directory),
  S3: () => openS3Blobs(bucket(), CREDENTIALS),
  'S3 without a prefix': () => openS3Blobs(bucket({ prefix: '' }), CREDENTIALS),
}

async function read(blobs: Blobs, key: string): Promise<Buffer | undefined> {
  const stream = await blobs.open(key)
  return stream && Buffer.concat(await stream.toArray())
}

async function ownersOf(blobs: Blobs): Promise<string[]> {
  const owners: string[] = []
  for await (const owner of blobs.owners()) owners.push(owner)
  return owners.sort()
}

/** Varying bytes, in chunks of odd sizes. */
async function* pattern(size: number): AsyncGenerator<Uint8Array> {
  const all = patternBytes(size)
  for (let at = 0; at < size; at += 99_991) yield all.subarray(at, at + 99_991)
}

function patternBytes(size: number): Buffer {
  return Buffer.from(Uint32Array.from({ length: Math.ceil(size / 4) }, (_, i) => i * 2_654_435_761).buffer).subarray(
    0,
    size,
  )
}

describe.each(Object.entries(BACKENDS))('files kept on %s', (_, open) => {
  let blobs: Blobs
  beforeAll(async () => {
    blobs = await open()
  })
  afterAll(() => blobs?.close())

  it('are returned as stored: bytes and streams, from empty to several parts', async () => {
    for (const [i, size] of [0, 1, 65_537, 12 * MIB + 1].entries()) {
      await blobs.put(`int_sizes/in/${i}`, pattern(size))
      await blobs.put(`int_sizes/out/${i}`, patternBytes(size))
      for (const key of [`int_sizes/in/${i}`, `int_sizes/out/${i}`]) {
        expect((await read(blobs, key))?.equals(patternBytes(size)), key).toBe(true)
      }
    }
    expect(Buffer.from((await blobs.get('int_sizes/in/2'))!).equals(patternBytes(65_537))).toBe(true)
    await blobs.removeAll('int_sizes')
  })

  it('are undefined if they do not exist', async () => {
    expect(await blobs.open('int_none/in/0')).toBeUndefined()
    expect(await blobs.get('int_none/in/0')).toBeUndefined()
  })

  it.each([1, 3 * MIB, 11 * MIB])('are not stored if their source fails after %i bytes', async (size) => {
    const broken = new Error('the source broke')
    async function* source() {
      yield* pattern(size)
      throw broken
    }
    await expect(blobs.put('int_broken/in/0', source())).rejects.toBe(broken)
    expect(await blobs.open('int_broken/in/0')).toBeUndefined()
  })

  it('are removed with their owner, and only that owner’s', async () => {
    for (const key of ['int_a/in/0', 'int_a/out/0', 'int_a/out/1', 'int_ab/in/0'])
      await blobs.put(key, Buffer.from(key))
    expect(await ownersOf(blobs)).toEqual(expect.arrayContaining(['int_a', 'int_ab']))
    for (let time = 0; time < 2; time++) await blobs.removeAll('int_a')
    for (const key of ['int_a/in/0', 'int_a/out/0', 'int_a/out/1']) expect(await blobs.open(key), key).toBeUndefined()
    expect((await read(blobs, 'int_ab/in/0'))?.toString()).toBe('int_ab/in/0')
    const owners = await ownersOf(blobs)
    expect(owners).toContain('int_ab')
    expect(owners.filter((owner) => owner === 'int_a' || owner.startsWith('probe_'))).toEqual([])
  })

  it('are refused under keys that a caller could have made up', async () => {
    for (const key of ['', '/', 'a//b', '../x', 'a/../b', 'a/.', 'ä', 'a b', 'a\0b', 'a/b?x', '/a']) {
      await expect(blobs.put(key, Buffer.of(1)), key).rejects.toThrow('not a key of the file store')
      await expect(blobs.open(key), key).rejects.toThrow('not a key of the file store')
      await expect(blobs.removeAll(key), key).rejects.toThrow('not a key of the file store')
    }
  })
})

describe('files on a disk', () => {
  it('that a killed server left unfinished are removed after a while', async () => {
    const place = await mkdtemp(join(tmpdir(), 'errand-blobs-'))
    const before = await openDiskBlobs(place)
    const [left] = await unfinished(before, place)
    const beside = await openDiskBlobs(place)
    expect(await readdir(join(place, '.tmp'))).toEqual([left])
    const hours = Date.now() / 1_000 - 2 * 3_600
    await utimes(join(place, '.tmp', left!), hours, hours)
    const later = await openDiskBlobs(place)
    expect(await readdir(join(place, '.tmp'))).toEqual([])
    expect(await ownersOf(later)).toEqual([])
    for (const blobs of [before, beside, later]) await blobs.close()
    await rm(place, { recursive: true })
  })
})

/** The unfinished files while one is written. */
async function unfinished(blobs: Blobs, place: string): Promise<string[]> {
  const { promise: end, reject } = Promise.withResolvers<never>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  async function* source() {
    yield Buffer.of(1)
    begin()
    await end
  }
  const writing = blobs.put('int_killed/in/0', source())
  await begun
  const names = await readdir(join(place, '.tmp'))
  await copyFile(join(place, '.tmp', names[0]!), join(place, '.tmp', 'left'))
  reject(new Error('over'))
  await expect(writing).rejects.toThrow('over')
  return ['left']
}

describe('files in a bucket', () => {
  it('are removed page by page, however many', async () => {
    const blobs = await openS3Blobs(bucket({ prefix: 'many' }), CREDENTIALS)
    const keys = Array.from({ length: 1_100 }, (_, i) => `int_many/out/${i}`)
    for (let at = 0; at < keys.length; at += 50) {
      await Promise.all(keys.slice(at, at + 50).map((key) => blobs.put(key, Buffer.of(1))))
    }
    await blobs.removeAll('int_many')
    expect(await ownersOf(blobs)).toEqual([])
    await blobs.close()
  })

  it('are read to the end although every connection breaks', async () => {
    const blobs = await openS3Blobs(bucket(), CREDENTIALS)
    const size = 3 * MIB
    await blobs.put('int_cut/out/0', patternBytes(size))
    let cuts = 0
    store.door = (request, response) => {
      if (request.method !== 'GET') return false
      const write = response.write.bind(response)
      let sent = 0
      response.write = (chunk: Uint8Array) => {
        sent += chunk.byteLength
        if (sent <= MIB || cuts === 5) return write(chunk)
        cuts++
        response.destroy()
        return false
      }
      return false
    }
    const bytes = await read(blobs, 'int_cut/out/0')
    store.door = undefined
    expect(cuts).toBeGreaterThan(1)
    expect(bytes?.equals(patternBytes(size))).toBe(true)
    await blobs.close()
  })

  it('are written although the store fails for a moment', async () => {
    const blobs = await openS3Blobs(bucket(), CREDENTIALS)
    let refusals = 2
    store.door = (_, response) => {
      if (refusals-- <= 0) return false
      response.writeHead(503).end()
      return true
    }
    await blobs.put('int_moment/out/0', patternBytes(MIB))
    store.door = undefined
    expect((await read(blobs, 'int_moment/out/0'))?.equals(patternBytes(MIB))).toBe(true)
    await blobs.close()
  })

  it('are reported as unavailable while the store fails', async () => {
    const blobs = await openS3Blobs(bucket(), CREDENTIALS)
    store.door = (request) => {
      request.socket.destroy()
      return true
    }
    await expect(blobs.put('int_out/out/0', Buffer.of(1))).rejects.toBeInstanceOf(BlobsUnavailable)
    await expect(blobs.put('int_out/out/0', pattern(MIB))).rejects.toBeInstanceOf(BlobsUnavailable)
    await expect(blobs.open('int_out/out/0')).rejects.toBeInstanceOf(BlobsUnavailable)
    await expect(blobs.removeAll('int_out')).rejects.toBeInstanceOf(BlobsUnavailable)
    await expect(ownersOf(blobs)).rejects.toBeInstanceOf(BlobsUnavailable)
    store.door = undefined
    await blobs.close()
  })

  it('are unavailable if the store never responds, and resumed if it stalls', async () => {
    const blobs = await openS3Blobs(bucket(), { ...CREDENTIALS, idleMs: 100 })
    await blobs.put('int_silent/out/0', patternBytes(3 * MIB))
    let silences = 3
    store.door = (request, response) => {
      if (request.method !== 'GET' || silences-- <= 0) return false
      const write = response.write.bind(response)
      let sent = 0
      response.write = (chunk: Uint8Array) => {
        sent += chunk.byteLength
        return sent <= MIB && write(chunk)
      }
      return false
    }
    expect((await read(blobs, 'int_silent/out/0'))?.equals(patternBytes(3 * MIB))).toBe(true)
    expect(silences).toBeLessThan(2)
    store.door = () => true
    await expect(blobs.put('int_silent/out/1', Buffer.of(1))).rejects.toBeInstanceOf(BlobsUnavailable)
    await expect(blobs.open('int_silent/out/0')).rejects.toBeInstanceOf(BlobsUnavailable)
    store.door = undefined
    await blobs.close()
  })

  it('are refused at the start, with a message, if the bucket can’t be written', async () => {
    const nowhere = openS3Blobs(bucket({ bucket: 'no-such-bucket' }), CREDENTIALS)
    await expect(nowhere).rejects.toThrow(/^The bucket no-such-bucket at http:\/\/127\.0\.0\.1:\d+ can't be used: \S/)
  })
})
