/** Opens the skills: the registry, the operator's folder, the cache for runs, and the periodic cleanup. */
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Blobs, BlobsUnavailable } from '../blobs/port.ts'
import { ErrandError } from '../domain/errors.ts'
import { randomBase62 } from '../domain/ids.ts'
import type { Database } from '../store/port.ts'
import type { Log } from '../telemetry/log.ts'
import { readFolder } from './folder.ts'
import type { SkillLimits } from './limits.ts'
import type { AddedSkill, SkillCache, Skills } from './port.ts'
import { createRegistry, type GoodFolder, type Registry } from './registry.ts'
import { createServerSkills } from './server-skills.ts'
import { createSkillCache } from './skill-cache.ts'
import { unzip } from './unzip.ts'

export interface SkillsOptions {
  readonly db: Database
  readonly blobs: Blobs
  /** Directory for unpacked skills and uploads under way. */
  readonly workDirectory: string
  /** Directory of the operator's skills; may not exist. Undefined: this node leaves the operator's skills to other nodes. */
  readonly serverDirectory: string | undefined
  readonly limits: SkillLimits & { readonly skillVersions: number }
  /** Maximum time from accepting a run to its end, in milliseconds: contents are kept that long. */
  readonly longestRunMs: number
  /** True if the process stays: then the operator's folder is rescanned and unused contents are removed, periodically. */
  readonly stays: boolean
  readonly log: Log
}

const LOOK_MS = 3_000
const SWEEP_MS = 600_000
const UPLOAD_MS = 3_600_000
/** Added to the longest run, for differing clocks and sandboxes that end late. */
const SLACK_MS = 3_600_000

/** Resolves once the operator's folder has been scanned. */
export async function openSkills(options: SkillsOptions): Promise<Skills & { readonly cache: SkillCache }> {
  const { db, blobs, limits, log, workDirectory } = options
  const uploads = join(workDirectory, 'uploads')
  const registry = createRegistry({ db, blobs, versionsPerProject: limits.skillVersions, now: Date.now })
  const cache = createSkillCache({ directory: join(workDirectory, 'shelf'), db, blobs })
  const server =
    options.serverDirectory && createServerSkills({ directory: options.serverDirectory, registry, limits, log })
  await mkdir(uploads, { recursive: true, mode: 0o700 })
  if (server) await server.scan()

  let busy: Promise<void> = Promise.resolve()
  const enqueue = (what: string, task: () => Promise<void>) => {
    busy = busy.then(() => task().catch((error) => log.error({ err: error }, `${what} failed`)))
  }
  const graceMs = options.longestRunMs + SLACK_MS
  async function sweep(): Promise<void> {
    await registry.sweep(graceMs)
    await cache.sweep(graceMs)
    await removeOld(uploads, UPLOAD_MS)
  }
  const timers: NodeJS.Timeout[] = []
  if (options.stays) timers.push(setInterval(() => enqueue('removing unused skills', sweep), SWEEP_MS))
  if (options.stays && server) {
    timers.push(setInterval(() => enqueue("scanning the operator's skills", server.scan), LOOK_MS))
  }

  return {
    ...registry,
    cache,
    async read(projectId, name, version, path) {
      const found = await registry.find(projectId, name, version)
      return found && (await cache.content(found.skill))?.read(path)
    },
    addZip: (projectId, zip) => addZip(registry, uploads, limits, projectId, zip),
    async close() {
      for (const timer of timers) clearInterval(timer)
      await busy
    },
  }
}

async function addZip(
  registry: Registry,
  uploads: string,
  limits: SkillLimits,
  projectId: string,
  zip: AsyncIterable<Uint8Array>,
): Promise<AddedSkill> {
  const workspace = join(uploads, randomBase62(16))
  const [file, directory] = [join(workspace, 'skill.zip'), join(workspace, 'skill')]
  await mkdir(directory, { recursive: true, mode: 0o700 })
  try {
    await pipeline(zip, createWriteStream(file, { mode: 0o600 }))
    const { folder: name } = await unzip(file, directory, limits)
    const folder = await readFolder(directory, limits, name)
    // The temporary folder means nothing to the caller: name the file only.
    const problems = folder.problems.map((problem) => ({
      ...problem,
      message: problem.message.replaceAll(`${directory}/`, '').replaceAll(directory, 'the skill'),
    }))
    if (!folder.skill) throw wrongSkill(problems.filter(({ severity }) => severity === 'error'))
    return await registry.add(projectId, { ...folder, problems, skill: folder.skill } satisfies GoodFolder)
  } catch (error) {
    throw full(error) ? new BlobsUnavailable('There is no space left for skills.', error) : error
  } finally {
    await rm(workspace, { recursive: true, force: true })
  }
}

function full(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')
}

function wrongSkill(problems: readonly { readonly message: string }[]): ErrandError {
  const details = problems.map(({ message }) => ({ param: 'file', message }))
  return new ErrandError('invalid_request', details[0]?.message ?? 'This is not a skill.', { param: 'file', details })
}

/** Removes uploads that a stopped server left behind. */
async function removeOld(directory: string, ageMs: number): Promise<void> {
  const before = Date.now() - ageMs
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    const found = await stat(path).catch(() => undefined)
    if (found && found.mtimeMs < before) await rm(path, { recursive: true, force: true })
  }
}
