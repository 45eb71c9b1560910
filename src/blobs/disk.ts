/** Files on this machine's disk: written to a temporary name, synced, then renamed, so that a key holds a whole file or none. */
import { createReadStream } from 'node:fs'
import { mkdir, open, opendir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { randomBase62 } from '../domain/ids.ts'
import { type Blobs, checkKey } from './port.ts'

export async function openDiskBlobs(directory: string): Promise<Blobs> {
  await mkdir(directory, { recursive: true, mode: 0o700 })

  const path = (key: string) => join(directory, checkKey(key))

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
        for (let up = dirname(target); up.startsWith(directory); up = dirname(up)) await syncDirectory(up)
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
    async removeAll(owner) {
      await rm(path(owner), { recursive: true, force: true })
    },
    async *owners() {
      for await (const { name } of await opendir(directory)) yield name
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
