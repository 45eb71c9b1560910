/**
 * The operator's skills. Every folder with a SKILL.md below the configured one is registered for all projects; a skill whose
 * folder is removed is hidden. The folder is scanned when the server starts and every few seconds afterwards. A skill that
 * can't be used is logged once with its path, and its last valid version stays.
 */
import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Log } from '../telemetry/log.ts'
import { type Folder, readFolder } from './folder.ts'
import type { SkillLimits } from './limits.ts'
import { SERVER } from './name-rows.ts'
import { isIgnored } from './paths.ts'
import type { GoodFolder, Registry } from './registry.ts'

/** Maximum depth of the scan: a cloned collection has its skills some folders down. */
const MAX_DEPTH = 4
const MAX_FOLDERS = 2000

export interface ServerSkillsOptions {
  readonly directory: string
  readonly registry: Registry
  readonly limits: SkillLimits
  readonly log: Log
}

export interface ServerSkills {
  /** Synchronizes the registry with the folder. Never rejects because of the folder's content. */
  scan(): Promise<void>
}

export function createServerSkills({ directory, registry, limits, log }: ServerSkillsOptions): ServerSkills {
  /** Skill names by folder. A folder that becomes invalid keeps its former name. */
  const names = new Map<string, string>()
  /** State last registered, by name. Only changed skills are read in full. */
  const states = new Map<string, string>()
  let logged = new Set<string>()

  /** The first folder of each name. Undefined if any folder could not be read. */
  async function readAll(say: (message: string) => void): Promise<Map<string, Folder> | undefined> {
    const found = new Map<string, Folder>()
    let whole = true
    const folders = await findFolders(directory, (path, error) => {
      whole = false
      say(`${path} can't be read (${error.code}).`)
    })
    for (const path of folders) {
      try {
        const folder = await readFolder(path, limits, basename(path))
        for (const { severity, message } of folder.problems) {
          say(severity === 'error' ? `A skill can't be used: ${message}` : message)
        }
        const name = folder.skill?.name ?? names.get(path) ?? basename(path)
        names.set(path, name)
        const first = found.get(name)
        if (first) say(`A skill can't be used: ${path} has the same name, ${name}, as ${first.directory}.`)
        else found.set(name, folder)
      } catch (error) {
        whole = false
        say(`A skill can't be read: ${(error as Error).message}`)
      }
    }
    return whole ? found : undefined
  }

  async function register(name: string, folder: GoodFolder, say: (message: string) => void): Promise<void> {
    const state = JSON.stringify([folder.directory, folder.files])
    if (states.get(name) === state) return
    const { skill, isNew, warnings } = await registry.add(SERVER, folder)
    states.set(name, state)
    for (const warning of warnings.slice(folder.problems.length)) say(`${folder.directory}: ${warning}`)
    if (isNew) log.info({ path: folder.directory }, `the server's skill ${name} is at version ${skill.version}`)
  }

  async function hideMissing(found: ReadonlyMap<string, Folder>): Promise<void> {
    for (const name of await registry.serverNames()) {
      if (found.has(name)) continue
      await registry.hideServer(name)
      states.delete(name)
      log.info({ path: directory }, `the skill ${name} was removed from the folder and is no longer offered`)
    }
  }

  return {
    async scan() {
      const messages = new Set<string>()
      const say = (message: string) => {
        messages.add(message)
        if (!logged.has(message)) log.warn({ path: directory }, message)
      }
      const found = await readAll(say)
      for (const [name, folder] of found ?? []) {
        // A skill that changes while it is read is read again on the next scan.
        if (isGood(folder)) await register(name, folder, say).catch((error: Error) => say(`A skill: ${error.message}`))
      }
      if (found) await hideMissing(found)
      logged = messages
    },
  }
}

function isGood(folder: Folder): folder is GoodFolder {
  return folder.skill !== undefined
}

/** Folders with a SKILL.md, in order. Follows links at the top level, which the operator made. Empty if the directory does not exist. */
async function findFolders(
  directory: string,
  unreadable: (path: string, error: NodeJS.ErrnoException) => void,
): Promise<string[]> {
  const found: string[] = []
  let scanned = 0
  async function walk(folder: string, depth: number): Promise<void> {
    if (++scanned > MAX_FOLDERS) return
    const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') unreadable(folder, error)
      return []
    })
    names.sort()
    if (depth > 0 && names.some((name) => name.toLowerCase() === 'skill.md')) {
      found.push(folder)
      return
    }
    if (depth === MAX_DEPTH) return
    for (const name of names) {
      if (name.startsWith('.') || name === 'node_modules' || isIgnored(name)) continue
      const path = join(folder, name)
      const entry = await (depth === 0 ? stat(path) : lstat(path)).catch(() => undefined)
      if (entry?.isDirectory()) await walk(path, depth + 1)
    }
  }
  await walk(directory, 0)
  return found
}
