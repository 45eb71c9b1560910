/**
 * The skill registry, on the database and the file store. A version is a row that refers to a content by digest. A content is
 * one file in the store, shared by all versions with that content. Version numbers of a name are never reused, even after its
 * versions are removed, so that a pinned version never changes its meaning.
 *
 * Contents without a version are kept for the maximum duration of a run. So deleting a skill, or uploading a new version,
 * does not affect running interactions.
 */
import type { Blobs } from '../blobs/port.ts'
import { isMcpEntry, toolsFor } from '../domain/allowed-tools.ts'
import { ErrandError } from '../domain/errors.ts'
import { madeAt, newId } from '../domain/ids.ts'
import { parseSkillRef, type SkillMeta, type SkillOffer } from '../domain/skill.ts'
import { type Database, wasMade } from '../store/port.ts'
import {
  deleteContent,
  findContent,
  holdContent,
  insertContent,
  isKnownBlob,
  releaseContents,
  releasedContents,
} from './content-rows.ts'
import { contentOf, digestFolder, type Folder } from './folder.ts'
import { findName, findNames, findOwner, nameStatement, SERVER } from './name-rows.ts'
import type { AddedSkill, Skills } from './port.ts'
import type { SkillText } from './skill-file.ts'
import {
  countVersions,
  deleteVersions,
  findSeen,
  findVersion,
  insertVersion,
  listSkills,
  listVersions,
  versionNumbers,
} from './version-rows.ts'

export interface RegistryOptions {
  readonly db: Database
  readonly blobs: Blobs
  /** Maximum number of versions of all skills of a project together. */
  readonly versionsPerProject: number
  readonly now: () => number
}

/** A folder without errors. */
export type GoodFolder = Folder & { readonly skill: SkillText }

export interface Registry extends Omit<Skills, 'addZip' | 'read' | 'close'> {
  /** Adds the next version, or returns the newest if nothing changed. Throws ErrandError `conflict` (too many versions). */
  add(owner: string, folder: GoodFolder): Promise<AddedSkill>
  /** Names of the operator's skills. */
  serverNames(): Promise<string[]>
  /** Hides an operator's skill. If it is added again unchanged it keeps its version, so pins survive a folder that was missing for a while. */
  hideServer(name: string): Promise<void>
  /** Removes contents without a version for `graceMs`, and remains of interrupted uploads in the file store. */
  sweep(graceMs: number): Promise<void>
}

/** Key of a content in the file store. Its files are concatenated there. */
export function contentKey(blob: string): string {
  return `${blob}/content`
}

/** Maximum number of unknown tools named in a warning. */
const SHOWN_UNKNOWN = 10
/** Age, in milliseconds, after which a blob that no skill refers to is removed. A younger one may belong to an upload in progress. */
const ORPHAN_MS = 3_600_000

export function createRegistry(options: RegistryOptions): Registry {
  const { db, blobs, now } = options

  async function add(owner: string, folder: GoodFolder): Promise<AddedSkill> {
    const { name, meta } = folder.skill
    const { digest, files } = await digestFolder(folder)
    const warnings = [...folder.problems.map(({ message }) => message), ...(await warningsFor(owner, name, meta))]
    for (;;) {
      const before = await findName(db, owner, name)
      const current = before && (await findVersion(db, owner, name))
      if (current?.digest === digest) return { skill: current, isNew: false, warnings }
      const hidden = before?.newest === 0 ? await findVersion(db, owner, name, before.lastVersion) : undefined
      if (before && hidden?.digest === digest) {
        const shown = nameStatement(db, owner, name, before, { ...before, newest: before.lastVersion })
        if (wasMade(await db.write([shown]), 'fence')) return { skill: hidden, isNew: false, warnings }
        continue
      }
      await checkRoom(owner)
      const known = await findContent(db, digest)
      // A new blob each time, so that a blob that is just being removed is never reused.
      const blob = known?.blob ?? newId('skl', now())
      if (!known) await blobs.put(contentKey(blob), contentOf(folder.directory, files))
      const at = now()
      const version = (before?.lastVersion ?? 0) + 1
      const createdAt = current && before ? before.createdAt : at
      const written = await db.write([
        known ? holdContent(db, digest) : insertContent(db, digest, { blob, meta, files }),
        nameStatement(db, owner, name, before, { newest: version, lastVersion: version, createdAt }),
        insertVersion(db, { owner, name, version, digest, at }),
      ])
      const isOurs = wasMade(written, 'fence', 'unique')
      if (!isOurs && !known) await blobs.removeAll(blob)
      const skill = isOurs ? await findVersion(db, owner, name, version) : undefined
      if (skill) return { skill, isNew: true, warnings }
      // Another process changed the skill meanwhile: try again from its current state.
    }
  }

  async function checkRoom(owner: string): Promise<void> {
    const { versionsPerProject } = options
    if (owner === SERVER || (await countVersions(db, owner)) < versionsPerProject) return
    throw new ErrandError(
      'conflict',
      `This project already has ${versionsPerProject} versions of skills, which is the maximum. Delete some first.`,
    )
  }

  /** Warnings for the caller that registers the skill. */
  async function warningsFor(owner: string, name: string, { allowedTools }: SkillMeta): Promise<string[]> {
    const found: string[] = []
    const unknown = allowedTools.filter((entry) => !toolsFor(entry) && !isMcpEntry(entry))
    if (unknown.length > 0) {
      const names = unknown.slice(0, SHOWN_UNKNOWN).join(', ')
      found.push(`\`allowed-tools\` names ${names}, which this server does not have; they were ignored.`)
    }
    if (owner !== SERVER && (await has(db, SERVER, name))) {
      found.push(`The server also has a skill ${name}. In this project the uploaded one takes precedence.`)
    }
    return found
  }

  async function removeFrom(owner: string, name: string, version?: number): Promise<boolean> {
    for (;;) {
      const before = await findName(db, owner, name)
      const numbers = before ? await versionNumbers(db, owner, name) : []
      const gone = version === undefined ? numbers : numbers.filter((number) => number === version)
      if (!before || gone.length === 0) return false
      const newest = numbers.find((number) => !gone.includes(number)) ?? 0
      const written = await db.write([
        deleteVersions(db, owner, name, version, gone.length),
        nameStatement(db, owner, name, before, { ...before, newest }),
      ])
      if (wasMade(written, 'fence', 'rows')) return true
    }
  }

  const findOne = (projectId: string, name: string, version?: number) =>
    findSeen(db.forProject(projectId), projectId, name, version)

  async function offer(projectId: string, ref: string): Promise<SkillOffer | undefined> {
    const asked = parseSkillRef(ref)
    const found = asked && (await findOne(projectId, asked.name, asked.version))
    if (!found) return undefined
    const { name, version, digest, meta } = found
    return { name, version, digest, allowedTools: meta.allowedTools }
  }

  return {
    add,
    async find(projectId, name, version) {
      const seen = db.forProject(projectId)
      const skill = await findOne(projectId, name, version)
      const content = skill && (await findContent(seen, skill.digest))
      if (!content) return undefined
      const owner = skill.origin === 'server' ? SERVER : projectId
      return { skill, files: content.files, versions: await versionNumbers(seen, owner, name) }
    },
    list: (projectId, query) => listSkills(db.forProject(projectId), projectId, query),
    async versions(projectId, name, page) {
      const owner = await findOwner(db.forProject(projectId), projectId, name)
      return owner === undefined ? undefined : listVersions(db.forProject(projectId), owner, name, page)
    },
    async remove(projectId, name, version) {
      if (await removeFrom(projectId, name, version)) return 'removed'
      return (await findOne(projectId, name, version))?.origin === 'server' ? 'server' : 'none'
    },
    async lookUp(projectId, refs) {
      const offers = new Map<string, SkillOffer>()
      for (const ref of new Set(refs)) {
        const found = await offer(projectId, ref)
        if (found) offers.set(ref, found)
      }
      return offers
    },
    serverNames: () => findNames(db, SERVER),
    async hideServer(name) {
      const before = await findName(db, SERVER, name)
      if (before) wasMade(await db.write([nameStatement(db, SERVER, name, before, { ...before, newest: 0 })]), 'fence')
    },
    async sweep(graceMs) {
      await releaseContents(db, now())
      for (const { digest, blob } of await releasedContents(db, now() - graceMs)) {
        if (await deleteContent(db, digest)) await blobs.removeAll(blob)
      }
      for await (const owner of blobs.owners()) {
        if (!owner.startsWith('skl_') || madeAt(owner) > now() - ORPHAN_MS) continue
        if (!(await isKnownBlob(db, owner))) await blobs.removeAll(owner)
      }
    },
  }
}

async function has(db: Database, owner: string, name: string): Promise<boolean> {
  return ((await findName(db, owner, name))?.newest ?? 0) > 0
}
