/**
 * The skills of a project, and what runs have of them: the port. A project sees its own and the server's; another
 * project's answers as one that is not there.
 */
import type { RunSpec } from '../domain/interaction.ts'
import type { Skill, SkillFile, SkillMeta, SkillOffer, SkillPin } from '../domain/skill.ts'
import type { Mount } from '../sandbox/port.ts'

export interface SkillPage {
  readonly skills: readonly Skill[]
  /** What `after` takes for the page behind; undefined on the last one. */
  readonly next: string | undefined
}

export interface SkillDetails {
  readonly skill: Skill
  readonly files: readonly SkillFile[]
  /** The numbers of all versions that are there, newest first. */
  readonly versions: readonly number[]
}

export interface AddedSkill {
  readonly skill: Skill
  /** False where the newest version had this very content already. */
  readonly isNew: boolean
  /** A sentence each. */
  readonly warnings: readonly string[]
}

/** What a run may be given, by what it was asked for: `pdf`, `pdf@3`. What is not in it is not to be had. */
export type SkillOffers = ReadonlyMap<string, SkillOffer>

export interface Skills {
  /**
   * Registers what a zip holds: the next version, or the newest where nothing changed. Throws ErrandError
   * `invalid_request` (param `file`), `payload_too_large`, `conflict` (too many versions).
   */
  addZip(projectId: string, zip: AsyncIterable<Uint8Array>): Promise<AddedSkill>
  list(
    projectId: string,
    query: { readonly order: 'asc' | 'desc'; readonly pageSize: number; readonly after?: string },
  ): Promise<SkillPage>
  /** Without a version, the newest. */
  find(projectId: string, name: string, version?: number): Promise<SkillDetails | undefined>
  /** A file's bytes. Undefined where there is no such skill, version or file. */
  read(projectId: string, name: string, version: number | undefined, path: string): Promise<Uint8Array | undefined>
  /** Newest first. Undefined where there is no such skill. */
  versions(
    projectId: string,
    name: string,
    page: { readonly pageSize: number; readonly after?: string },
  ): Promise<SkillPage | undefined>
  /** One version, or all. `server`: there is one, and it is the operator's. Runs that have it keep it. */
  remove(projectId: string, name: string, version?: number): Promise<'removed' | 'none' | 'server'>
  lookUp(projectId: string, refs: readonly string[]): Promise<SkillOffers>
  close(): Promise<void>
}

/** A version's content, at hand on this machine. */
export interface SkillContent {
  readonly meta: SkillMeta
  readonly files: readonly SkillFile[]
  /** What SKILL.md says behind its front matter. */
  instructions(): Promise<string>
  /** Undefined for what is no file of the skill. */
  read(path: string): Promise<Uint8Array | undefined>
}

/** What runs have of their skills, whatever became of the registry meanwhile. */
export interface SkillShelf {
  /** Undefined where the content is gone. */
  content(pin: SkillPin): Promise<SkillContent | undefined>
  /** The skills' folders on this machine, and where the sandbox shows them. */
  mounts(spec: Pick<RunSpec, 'skills'>): Promise<readonly Mount[]>
}

/** Where a sandbox shows the skill of that name. */
export function placeInside(name: string): string {
  return `/skills/${name}`
}
