/**
 * The file store on a local or shared disk. Files are written in a temporary directory, synced and then renamed, so that a key
 * has a complete file or none.
 */
import { createReadStream } from 'node:fs'
import { mkdir, open, opendir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { randomBase62 } from '../domain/ids.ts'
import { noteTransferred } from '../runtime/collect-buffers.ts'
import { type Blobs, BlobsUnavailable, checkKey } from './port.ts'

const UNFINISHED = '.tmp'
/** Age after which an unfinished file counts as abandoned, milliseconds. */
const OLD_MS = 3_600_000

export async function openDiskBlobs(directory: string): Promise<Blobs> {
  const unfinished = join(directory, UNFINISHED)
  await mkdir(unfinished, { recursive: true, mode: 0o700 })
  await removeOld(unfinished)

  const path = (key: string) => join(directory, checkKey(key))

  return {
    async put(key, bytes) {
      const target = path(key)
      const temporary = join(unfinished, randomBase62(16))
      try {
        const file = await open(temporary, 'wx', 0o600)
        try {
          await file.writeFile(bytes)
          await file.sync()
        } finally {
          await file.close()
        }
        await mkdir(dirname(target), { recursive: true, mode: 0o700 })
        await rename(temporary, target)
        for (let up = dirname(target); up.startsWith(directory); up = dirname(up)) await syncDirectory(up)
      } catch (error) {
        await rm(temporary, { force: true })
        throw isFull(error) ? new BlobsUnavailable(`There is no space left for files in ${directory}.`, error) : error
      }
    },
    get: (key) => readFile(path(key)).catch(missing),
    async open(key) {
      const target = path(key)
      return (await stat(target).catch(missing)) && Readable.from(read(target), { objectMode: false })
    },
    async removeAll(owner) {
      await rm(path(owner), { recursive: true, force: true })
    },
    async *owners() {
      for await (const { name } of await opendir(directory)) if (name !== UNFINISHED) yield name
    },
    async close() {},
  }
}

async function* read(path: string): AsyncGenerator<Uint8Array> {
  for await (const chunk of createReadStream(path)) {
    noteTransferred(chunk.length)
    yield chunk
  }
}

/** Removes files that a killed server left unfinished. */
async function removeOld(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    const found = await stat(path).catch(missing)
    if (found && found.mtimeMs < Date.now() - OLD_MS) await rm(path, { force: true })
  }
}

/** Makes a rename durable. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
  throw error
}
