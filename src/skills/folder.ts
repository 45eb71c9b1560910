/**
 * Reads a skill from a folder: lists and checks its files, then reads SKILL.md. Symbolic links are not followed. A link, a
 * device or an invalid file name is an error, and the folder is then not usable as a skill.
 */
import { createHash } from 'node:crypto'
import { createReadStream, type Dirent } from 'node:fs'
import { lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SkillFile } from '../domain/skill.ts'
import type { SkillLimits } from './limits.ts'
import { collisions, decodeName, isIgnored, pathProblem, shown } from './paths.ts'
import { MAX_SKILL_FILE_BYTES, type Problem, readSkillFile, SKILL_FILE, type SkillText } from './skill-file.ts'

export interface FolderFile {
  readonly path: string
  readonly size: number
  readonly executable: boolean
  /** Milliseconds since the Unix epoch. */
  readonly modifiedAt: number
}

export interface Folder {
  readonly directory: string
  /** Sorted by path. */
  readonly files: readonly FolderFile[]
  /** Undefined if any problem is an error. */
  readonly skill: SkillText | undefined
  /** The first problems. Each names its path. */
  readonly problems: readonly Problem[]
}

const MAX_PROBLEMS = 50

/** `name`: the folder's name, if it has a meaningful one. */
export async function readFolder(directory: string, limits: SkillLimits, name: string | undefined): Promise<Folder> {
  const problems: Problem[] = []
  const files = await listFiles(directory, limits, problems)
  checkSize(directory, files, limits, problems)
  for (const problem of collisions(files.map(({ path }) => path))) {
    problems.push({ severity: 'error', message: `${directory}: ${problem}.` })
  }
  const read = await readText(directory, files, name)
  problems.push(...read.problems)
  const failed = problems.some(({ severity }) => severity === 'error')
  return { directory, files, skill: failed ? undefined : read.skill, problems: problems.slice(0, MAX_PROBLEMS) }
}

/** Computes the digests of the files and of the whole content. Throws if a file changes meanwhile. */
export async function digestFolder({ directory, files }: Folder): Promise<{ digest: string; files: SkillFile[] }> {
  const digested: SkillFile[] = []
  for (const { path, size, executable } of files) {
    const hash = createHash('sha256')
    let read = 0
    for await (const chunk of createReadStream(join(directory, path))) {
      hash.update(chunk as Buffer)
      read += (chunk as Buffer).length
    }
    if (read !== size) throw new Error(`${join(directory, path)} changed while it was read.`)
    digested.push({ path, size, executable, sha256: hash.digest('hex') })
  }
  return { digest: digestOf(digested), files: digested }
}

/** The digest of the content. Independent of modification times and of the skill's name. */
function digestOf(files: readonly SkillFile[]): string {
  const list = files.map(({ path, executable, sha256 }) => [path, executable, sha256])
  return createHash('sha256').update(JSON.stringify(list)).digest('hex')
}

/** The bytes of all files, in the order of the list. */
export async function* contentOf(directory: string, files: readonly SkillFile[]): AsyncGenerator<Uint8Array> {
  for (const { path, sha256 } of files) {
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(join(directory, path))) {
      hash.update(chunk as Buffer)
      yield chunk as Buffer
    }
    if (hash.digest('hex') !== sha256) throw new Error(`${join(directory, path)} changed while it was read.`)
  }
}

/** The path of SKILL.md among the files. Some write it in lower case. */
export function skillFileOf(files: readonly { readonly path: string }[]): string | undefined {
  return [SKILL_FILE, SKILL_FILE.toLowerCase()].find((name) => files.some(({ path }) => path === name))
}

async function readText(directory: string, files: readonly FolderFile[], name: string | undefined) {
  const path = skillFileOf(files)
  if (path === undefined) {
    const message = `${directory}: there is no ${SKILL_FILE}.`
    return { skill: undefined, problems: [{ severity: 'error', message } satisfies Problem] }
  }
  const file = join(directory, path)
  const read = readSkillFile(await readStart(file, MAX_SKILL_FILE_BYTES + 1), file, name)
  if (path === SKILL_FILE) return read
  const message = `${file}: the convention writes the name in capitals, ${SKILL_FILE}.`
  return { ...read, problems: [...read.problems, { severity: 'warning', message } satisfies Problem] }
}

async function readStart(path: string, bytes: number): Promise<Uint8Array> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

function checkSize(directory: string, files: readonly FolderFile[], limits: SkillLimits, problems: Problem[]): void {
  const { skillBytes, skillFiles } = limits
  const size = files.reduce((sum, file) => sum + file.size, 0)
  if (size > skillBytes) {
    const message = `${directory}: its files have ${size} bytes; at most ${skillBytes} are allowed.`
    problems.push({ severity: 'error', message })
  }
  if (files.length > skillFiles) {
    problems.push({ severity: 'error', message: `${directory}: it has more than ${skillFiles} files.` })
  }
}

/** Lists the files. Stops soon after the limit is exceeded. */
async function listFiles(directory: string, { skillFiles }: SkillLimits, problems: Problem[]): Promise<FolderFile[]> {
  const files: FolderFile[] = []
  const error = (path: string, what: string) =>
    problems.push({ severity: 'error', message: `${directory}: the name ${shown(path)} ${what}.` })

  async function look(entry: Dirent<Buffer>, below: string): Promise<void> {
    const name = decodeName(entry.name)
    if (name === undefined) return void error(below + entry.name.toString('latin1'), 'is not UTF-8')
    const path = below + name
    if (isIgnored(name)) return
    const problem = pathProblem(path)
    if (problem !== undefined) return void error(path, problem)
    if (entry.isDirectory()) return walk(path)
    if (!entry.isFile()) {
      const kind = entry.isSymbolicLink() ? 'a symbolic link' : 'no regular file'
      problems.push({
        severity: 'error',
        message: `${join(directory, path)} is ${kind}; a skill has files and folders.`,
      })
      return
    }
    const { size, mode, mtimeMs } = await lstat(join(directory, path))
    files.push({ path, size, executable: (mode & 0o111) !== 0, modifiedAt: mtimeMs })
  }

  async function walk(folder: string): Promise<void> {
    const entries = await readdir(join(directory, folder), { withFileTypes: true, encoding: 'buffer' })
    for (const entry of entries) {
      if (files.length > skillFiles || problems.length > MAX_PROBLEMS) return
      await look(entry, folder === '' ? '' : `${folder}/`)
    }
  }

  await walk('')
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}
