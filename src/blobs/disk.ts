/** Files on this machine's disk: written to a temporary name, synced, then renamed, so that a key holds a whole file or none. */
import { createReadStream } from 'node:fs'
import { mkdir, open, readFile, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { randomBase62 } from '../domain/ids.ts'
import type { Blobs } from './port.ts'

/** Keys are made by the server (`int_…/in/0`): letters, digits, `_`, `-` and `/`. Never a caller's file name. */
const KEY = /^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/

export async function openDiskBlobs(directory: string): Promise<Blobs> {
  await mkdir(directory, { recursive: true, mode: 0o700 })

  function path(key: string): string {
    if (!KEY.test(key)) throw new Error(`not a blob key: ${JSON.stringify(key)}`)
    return join(directory, key)
  }

  return {
    async put(key, bytes) {
      const target = path(key)
      const temporary = `${target}.${randomBase62(8)}.tmp`
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      try {
        const file = await open(temporary, 'wx', 0o600)
        try {
          await file.writeFile(bytes)
          await file.sync()
        } finally {
          await file.close()
        }
        await rename(temporary, target)
        await syncDirectory(dirname(target))
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    },
    get: (key) => readFile(path(key)).catch(missing),
    async open(key) {
      const target = path(key)
      return (await stat(target).catch(missing)) ? createReadStream(target) : undefined
    },
    async remove(keys) {
      for (const key of keys) {
        const target = path(key)
        await rm(target, { force: true })
        // The folders go with their last file; one that still holds others stays.
        await rmdir(dirname(target)).catch(() => {})
        await rmdir(dirname(dirname(target))).catch(() => {})
      }
    },
    async close() {},
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

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
  throw error
}
