/**
 * The contents of skills as folders on this machine, a folder a digest: made on first need from the blob store, checked
 * byte by byte, then shared by every run that has the skill. Sandboxes show them read-only; nothing in them is ever
 * written again. One that nobody has opened for as long as a run may take is removed.
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
import { placeInside, type SkillShelf } from './port.ts'
import { contentKey } from './registry.ts'
import { readSkillFile } from './skill-file.ts'

export interface ShelfOptions {
  /** Ours alone; made where it is not there. */
  readonly directory: string
  readonly db: Database
  readonly blobs: Blobs
}

export interface Shelf extends SkillShelf {
  /** Removes folders that were not asked for in `graceMs`. */
  sweep(graceMs: number): Promise<void>
}

/** So many instructions are kept at hand; longer ones are read anew each time. */
const KEPT = 100
const KEPT_CHARACTERS = 64 * 1024

export function createShelf({ directory, db, blobs }: ShelfOptions): Shelf {
  const placing = new Map<string, Promise<string>>()
  /** By digest: what is under one never changes. */
  const kept = new Map<string, string>()

  /** The folder of that content. */
  function place(digest: string, content: Content): Promise<string> {
    const target = join(directory, digest)
    const found = placing.get(digest)
    if (found) return found
    const done = ready(target, content).finally(() => placing.delete(digest))
    placing.set(digest, done)
    return done
  }

  async function ready(target: string, content: Content): Promise<string> {
    const isThere = await stat(target).catch(() => undefined)
    if (isThere && !(await isWhole(target, content.files))) await rm(target, { recursive: true, force: true })
    if (!isThere || !(await stat(target).catch(() => undefined))) await unfold(target, content)
    // What was asked for last stays longest.
    await utimes(target, new Date(), new Date())
    return target
  }

  async function unfold(target: string, { blob, files }: Content): Promise<void> {
    const temporary = `${target}.${randomBase62(8)}.tmp`
    const source = await blobs.open(contentKey(blob))
    if (!source) throw new Error(`The content of a skill is missing from the file store: ${blob}`)
    try {
      await mkdir(temporary, { recursive: true })
      await chmod(directory, 0o700)
      await chmod(temporary, 0o755)
      await writeFiles(temporary, files, source)
      // Another process may have been faster: then its folder is as good.
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
        files.some((file) => file.path === path) ? readFile(join(await place(digest, content), path)) : undefined
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
        if (content) mounts.push({ source: await place(digest, content), target: placeInside(name) })
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

/** After a power failure a file's bytes may be missing though its name is there. */
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
    const place = join(target, path)
    await makeFolders(target, dirname(place))
    const file = await open(place, 'wx')
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
      // Whatever the umask says: another user than ours reads them inside.
      await file.chmod(executable ? 0o755 : 0o644)
    } finally {
      await file.close()
    }
  }
}

/** From the top, so that each has its mode whatever the umask says. */
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
