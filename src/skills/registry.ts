/**
 * The registry over the database and the blob store. A version is a row that names a content by its digest; a content is
 * one blob, shared by every version that has it. A name keeps counting after its versions are removed, so that a pin never
 * comes to mean something else.
 *
 * Contents that no version names are kept for as long as a run that was accepted with one may take: deleting a skill, or
 * uploading the next, touches no running interaction.
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
  /** Versions that a project may keep, of all its skills together. */
  readonly versionsPerProject: number
  readonly now: () => number
}

/** A folder without errors. */
export type GoodFolder = Folder & { readonly skill: SkillText }

export interface Registry extends Omit<Skills, 'addZip' | 'read' | 'close'> {
  /** The next version, or the newest where nothing changed. Throws ErrandError `conflict` (too many versions). */
  add(owner: string, folder: GoodFolder): Promise<AddedSkill>
  /** The names of the operator's. */
  serverNames(): Promise<string[]>
  /** Nobody has it any more; added again, it is what it was, so that pins hold through a folder that was away. */
  hideServer(name: string): Promise<void>
  /** Removes contents that have had no version for `graceMs`, and what an upload that broke off left in the blob store. */
  sweep(graceMs: number): Promise<void>
}

/** Where a content's bytes lie, file after file. */
export function contentKey(blob: string): string {
  return `${blob}/content`
}

const SHOWN_STRANGERS = 10
/** A blob that no content names yet may belong to an upload under way. */
const ORPHAN_MS = 3_600_000

export function createRegistry(options: RegistryOptions): Registry {
  const { db, blobs, now } = options

  async function add(owner: string, folder: GoodFolder): Promise<AddedSkill> {
    const { name, meta } = folder.skill
    const { digest, files } = await digestFolder(folder)
    const warnings = [...folder.problems.map(({ message }) => message), ...(await remarks(owner, name, meta))]
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
      // A blob of its own each time: one that is being removed just now is never taken for this one.
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
      // Somebody else registered or removed something of it meanwhile: once more, from what there is now.
    }
  }

  async function checkRoom(owner: string): Promise<void> {
    const { versionsPerProject } = options
    if (owner === SERVER || (await countVersions(db, owner)) < versionsPerProject) return
    throw new ErrandError(
      'conflict',
      `This project keeps ${versionsPerProject} versions of skills already, and that is the most. Delete some first.`,
    )
  }

  /** What whoever registers it should know, though it is no fault. */
  async function remarks(owner: string, name: string, { allowedTools }: SkillMeta): Promise<string[]> {
    const said: string[] = []
    const strangers = allowedTools.filter((entry) => !toolsFor(entry) && !isMcpEntry(entry))
    if (strangers.length > 0) {
      const names = strangers.slice(0, SHOWN_STRANGERS).join(', ')
      said.push(`\`allowed-tools\` names ${names}, which are no tools of this server; they were passed over.`)
    }
    if (owner !== SERVER && (await has(db, SERVER, name))) {
      said.push(`The server has a skill ${name} too; in this project the uploaded one goes before it.`)
    }
    return said
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
