/**
 * The operator's skills: every folder with a SKILL.md below the configured one is registered for all projects, and what
 * goes from there is taken back. Looked at when the server starts and every few seconds after. What can't be used is told
 * in the log with its path, once for as long as it stays so, and stops nothing; its last good version stays.
 */
import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Log } from '../telemetry/log.ts'
import { type Folder, readFolder } from './folder.ts'
import type { SkillLimits } from './limits.ts'
import { SERVER } from './name-rows.ts'
import { isLitter } from './paths.ts'
import type { GoodFolder, Registry } from './registry.ts'

/** A clone of a collection keeps its skills some folders down. */
const MAX_DEPTH = 4
const MAX_FOLDERS = 2000

export interface ServerSkillsOptions {
  readonly directory: string
  readonly registry: Registry
  readonly limits: SkillLimits
  readonly log: Log
}

export interface ServerSkills {
  /** Brings the registry in line with the folder. Never rejects for what lies there. */
  look(): Promise<void>
}

export function createServerSkills({ directory, registry, limits, log }: ServerSkillsOptions): ServerSkills {
  /** By folder: a broken one keeps the name that it had. */
  const names = new Map<string, string>()
  /** By name: what was registered last, so that only a change is read whole. */
  const states = new Map<string, string>()
  let told = new Set<string>()

  /** The first folder of each name; undefined where one could not be read. */
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
        if (first) say(`A skill can't be used: ${path} has the name ${name}, as ${first.directory} has.`)
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

  async function takeBack(found: ReadonlyMap<string, Folder>): Promise<void> {
    for (const name of await registry.serverNames()) {
      if (found.has(name)) continue
      await registry.hideServer(name)
      states.delete(name)
      log.info({ path: directory }, `the skill ${name} is gone from the folder, and from the server`)
    }
  }

  return {
    async look() {
      const messages = new Set<string>()
      const say = (message: string) => {
        messages.add(message)
        if (!told.has(message)) log.warn({ path: directory }, message)
      }
      const found = await readAll(say)
      for (const [name, folder] of found ?? []) {
        // What changes while it is read is read again the next time.
        if (isGood(folder)) await register(name, folder, say).catch((error: Error) => say(`A skill: ${error.message}`))
      }
      if (found) await takeBack(found)
      told = messages
    },
  }
}

function isGood(folder: Folder): folder is GoodFolder {
  return folder.skill !== undefined
}

/** Folders with a SKILL.md, in order; a link to one counts, for the operator put it there. None where there is no folder. */
async function findFolders(
  directory: string,
  unreadable: (path: string, error: NodeJS.ErrnoException) => void,
): Promise<string[]> {
  const found: string[] = []
  let looked = 0
  async function walk(folder: string, depth: number): Promise<void> {
    if (++looked > MAX_FOLDERS) return
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
      if (name.startsWith('.') || name === 'node_modules' || isLitter(name)) continue
      const path = join(folder, name)
      const entry = await (depth === 0 ? stat(path) : lstat(path)).catch(() => undefined)
      if (entry?.isDirectory()) await walk(path, depth + 1)
    }
  }
  await walk(directory, 0)
  return found
}
