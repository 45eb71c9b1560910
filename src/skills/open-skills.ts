/** Puts the room together: the registry, the operator's folder, the shelf that runs read from, and what keeps them tidy. */
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
import type { AddedSkill, SkillShelf, Skills } from './port.ts'
import { createRegistry, type GoodFolder, type Registry } from './registry.ts'
import { createServerSkills } from './server-skills.ts'
import { createShelf } from './shelf.ts'
import { unzip } from './unzip.ts'

export interface SkillsOptions {
  readonly db: Database
  readonly blobs: Blobs
  /** Ours to write to: unpacked skills, uploads under way. */
  readonly workDirectory: string
  /** The operator's skills; none where it is not there. Undefined: other nodes may have them, and are left theirs. */
  readonly serverDirectory: string | undefined
  readonly limits: SkillLimits & { readonly skillVersions: number }
  /** How long a run may have been accepted before it has its skills, and have them then, milliseconds. */
  readonly longestRunMs: number
  /** Whether to look at the operator's folder again and again, and to tidy up. */
  readonly stays: boolean
  readonly log: Log
}

const LOOK_MS = 3_000
const SWEEP_MS = 600_000
const UPLOAD_MS = 3_600_000
/** Beyond the longest run, for clocks that differ and sandboxes that end late. */
const SLACK_MS = 3_600_000

/** The operator's folder was looked at when it resolves. */
export async function openSkills(options: SkillsOptions): Promise<Skills & { readonly shelf: SkillShelf }> {
  const { db, blobs, limits, log, workDirectory } = options
  const uploads = join(workDirectory, 'uploads')
  const registry = createRegistry({ db, blobs, versionsPerProject: limits.skillVersions, now: Date.now })
  const shelf = createShelf({ directory: join(workDirectory, 'shelf'), db, blobs })
  const server =
    options.serverDirectory && createServerSkills({ directory: options.serverDirectory, registry, limits, log })
  await mkdir(uploads, { recursive: true, mode: 0o700 })
  if (server) await server.look()

  let busy: Promise<void> = Promise.resolve()
  const enqueue = (what: string, task: () => Promise<void>) => {
    busy = busy.then(() => task().catch((error) => log.error({ err: error }, `${what} failed`)))
  }
  const graceMs = options.longestRunMs + SLACK_MS
  async function sweep(): Promise<void> {
    await registry.sweep(graceMs)
    await shelf.sweep(graceMs)
    await removeOld(uploads, UPLOAD_MS)
  }
  const timers: NodeJS.Timeout[] = []
  if (options.stays) timers.push(setInterval(() => enqueue('tidying up skills', sweep), SWEEP_MS))
  if (options.stays && server) {
    timers.push(setInterval(() => enqueue("looking at the operator's skills", server.look), LOOK_MS))
  }

  return {
    ...registry,
    shelf,
    async read(projectId, name, version, path) {
      const found = await registry.find(projectId, name, version)
      return found && (await shelf.content(found.skill))?.read(path)
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
  const place = join(uploads, randomBase62(16))
  const [file, directory] = [join(place, 'skill.zip'), join(place, 'skill')]
  await mkdir(directory, { recursive: true, mode: 0o700 })
  try {
    await pipeline(zip, createWriteStream(file, { mode: 0o600 }))
    const { folder: name } = await unzip(file, directory, limits)
    const folder = await readFolder(directory, limits, name)
    // Nobody knows the folder that it was unpacked to: the file's own name is enough.
    const problems = folder.problems.map((problem) => ({
      ...problem,
      message: problem.message.replaceAll(`${directory}/`, '').replaceAll(directory, 'the skill'),
    }))
    if (!folder.skill) throw wrongSkill(problems.filter(({ severity }) => severity === 'error'))
    return await registry.add(projectId, { ...folder, problems, skill: folder.skill } satisfies GoodFolder)
  } catch (error) {
    throw full(error) ? new BlobsUnavailable('There is no space left for skills.', error) : error
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

function full(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')
}

function wrongSkill(problems: readonly { readonly message: string }[]): ErrandError {
  const details = problems.map(({ message }) => ({ param: 'file', message }))
  return new ErrandError('invalid_request', details[0]?.message ?? 'This is no skill.', { param: 'file', details })
}

/** Of a server that stopped while it unpacked. */
async function removeOld(directory: string, ageMs: number): Promise<void> {
  const before = Date.now() - ageMs
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    const found = await stat(path).catch(() => undefined)
    if (found && found.mtimeMs < before) await rm(path, { recursive: true, force: true })
  }
}
