/**
 * A cache of skill contents on this machine, one folder for each digest. A folder is unpacked from the file store on first
 * use, verified by checksum, and then shared by all runs with the skill. It never changes, and sandboxes mount it read-only.
 * A folder that was not used for the maximum duration of a run is removed.
 */
import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Blobs, BlobsUnavailable } from '../blobs/port.ts'
import { randomBase62 } from '../domain/ids.ts'
import type { SkillFile } from '../domain/skill.ts'
import type { Database } from '../store/port.ts'
import { type Content, findContent } from './content-rows.ts'
import { skillFileOf } from './folder.ts'
import { type SkillCache, sandboxPath } from './port.ts'
import { contentKey } from './registry.ts'
import { readSkillFile } from './skill-file.ts'

export interface SkillCacheOptions {
  /** Used by the cache only. Created if it does not exist. */
  readonly directory: string
  readonly db: Database
  readonly blobs: Blobs
}

export interface SweptSkillCache extends SkillCache {
  /** Removes folders that were not used for `graceMs`. */
  sweep(graceMs: number): Promise<void>
}

/** Maximum number of instructions in memory, and their maximum length. Longer ones are read from disk each time. */
const KEPT = 100
const KEPT_CHARACTERS = 64 * 1024

export function createSkillCache({ directory, db, blobs }: SkillCacheOptions): SweptSkillCache {
  const unpacking = new Map<string, Promise<string>>()
  /** Instructions by digest. The content of a digest never changes. */
  const kept = new Map<string, string>()

  /** Returns the folder of a content, and unpacks it first if necessary. */
  function folderOf(digest: string, content: Content): Promise<string> {
    const target = join(directory, digest)
    const found = unpacking.get(digest)
    if (found) return found
    const done = refresh(target, content).finally(() => unpacking.delete(digest))
    unpacking.set(digest, done)
    return done
  }

  async function refresh(target: string, content: Content): Promise<string> {
    const isThere = await stat(target).catch(() => undefined)
    if (isThere && !(await isWhole(target, content.files))) await rm(target, { recursive: true, force: true })
    if (!isThere || !(await stat(target).catch(() => undefined))) await unpack(target, content)
    // The modification time is the time of last use, for `sweep`.
    await utimes(target, new Date(), new Date())
    return target
  }

  async function unpack(target: string, { blob, files }: Content): Promise<void> {
    const temporary = `${target}.${randomBase62(8)}.tmp`
    const source = await blobs.open(contentKey(blob))
    if (!source) throw new Error(`The content of a skill is missing from the file store: ${blob}`)
    try {
      await mkdir(temporary, { recursive: true })
      await chmod(directory, 0o700)
      await chmod(temporary, 0o755)
      await writeFiles(temporary, files, source)
      // Another process may have been faster; its folder has the same content.
      await rename(temporary, target).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
      })
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      const full = ['ENOSPC', 'EDQUOT'].includes(code)
      throw full ? new BlobsUnavailable('There is no space left for skills.', error) : error
    } finally {
      source.destroy()
      await rm(temporary, { recursive: true, force: true })
    }
  }

  return {
    async content({ digest }) {
      const content = await findContent(db, digest)
      if (!content) return undefined
      const { meta, files } = content
      const read = async (path: string) =>
        files.some((file) => file.path === path) ? readFile(join(await folderOf(digest, content), path)) : undefined
      return {
        meta,
        files,
        read,
        async instructions() {
          const known = kept.get(digest)
          if (known !== undefined) return known
          const path = skillFileOf(files)!
          const { skill } = readSkillFile((await read(path))!, path)
          if (!skill) throw new Error(`The content of a skill is damaged: ${digest}`)
          const { instructions } = skill
          if (kept.size === KEPT) kept.clear()
          if (instructions.length <= KEPT_CHARACTERS) kept.set(digest, instructions)
          return instructions
        },
      }
    },
    async mounts({ skills }) {
      const mounts = []
      for (const { name, digest } of skills) {
        const content = await findContent(db, digest)
        if (content) mounts.push({ source: await folderOf(digest, content), target: sandboxPath(name) })
      }
      return mounts
    },
    async sweep(graceMs) {
      const before = Date.now() - graceMs
      for (const name of await readdir(directory).catch(() => [])) {
        const path = join(directory, name)
        const found = await stat(path).catch(() => undefined)
        if (found && found.mtimeMs < before) await rm(path, { recursive: true, force: true })
      }
    },
  }
}

/** Checks the size of each file: after a power failure a file may exist without its content. */
async function isWhole(target: string, files: readonly SkillFile[]): Promise<boolean> {
  for (const { path, size } of files) {
    const found = await lstat(join(target, path)).catch(() => undefined)
    if (!found?.isFile() || found.size !== size) return false
  }
  return true
}

async function writeFiles(target: string, files: readonly SkillFile[], source: AsyncIterable<Buffer>): Promise<void> {
  const pieces = source[Symbol.asyncIterator]()
  let left: Buffer = Buffer.alloc(0)
  for (const { path, size, executable, sha256 } of files) {
    const filePath = join(target, path)
    await makeFolders(target, dirname(filePath))
    const file = await open(filePath, 'wx')
    const hash = createHash('sha256')
    try {
      for (let missing = size; missing > 0; ) {
        if (left.length === 0) {
          const { value, done } = await pieces.next()
          if (done) throw new Error(`The content of a skill is cut short in the file store: ${path}`)
          left = value
          continue
        }
        const piece = left.subarray(0, missing)
        left = left.subarray(piece.length)
        missing -= piece.length
        hash.update(piece)
        await file.writeFile(piece)
      }
      if (hash.digest('hex') !== sha256) throw new Error(`The content of a skill is damaged in the file store: ${path}`)
      // Set explicitly, whatever the umask: in the sandbox another user reads the file.
      await file.chmod(executable ? 0o755 : 0o644)
    } finally {
      await file.close()
    }
  }
}

/** Creates folders one by one, so that each gets its mode whatever the umask. */
async function makeFolders(top: string, folder: string): Promise<void> {
  if (folder === top) return
  await makeFolders(top, dirname(folder))
  await mkdir(folder).then(
    () => chmod(folder, 0o755),
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    },
  )
}
