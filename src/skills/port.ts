/**
 * The port to skills: managing a project's skills, and providing them to runs. A project sees its own skills and the server's.
 * Another project's skill looks as if it did not exist.
 */
import type { RunSpec } from '../domain/interaction.ts'
import type { Skill, SkillFile, SkillMeta, SkillOffer, SkillPin } from '../domain/skill.ts'
import type { Mount } from '../sandbox/port.ts'

export interface SkillPage {
  readonly skills: readonly Skill[]
  /** The `after` of the next page; undefined on the last page. */
  readonly next: string | undefined
}

export interface SkillDetails {
  readonly skill: Skill
  readonly files: readonly SkillFile[]
  /** Numbers of all existing versions, newest first. */
  readonly versions: readonly number[]
}

export interface AddedSkill {
  readonly skill: Skill
  /** False if the newest version already had this content. */
  readonly isNew: boolean
  /** Warnings, one sentence each. */
  readonly warnings: readonly string[]
}

/** Skills that a run can get, by requested reference (`pdf`, `pdf@3`). A reference that does not exist is absent. */
export type SkillOffers = ReadonlyMap<string, SkillOffer>

export interface Skills {
  /**
   * Registers the skill in a zip as the next version, or returns the newest version if nothing changed. Throws ErrandError
   * `invalid_request` (param `file`), `payload_too_large`, or `conflict` (too many versions).
   */
  addZip(projectId: string, zip: AsyncIterable<Uint8Array>): Promise<AddedSkill>
  list(
    projectId: string,
    query: { readonly order: 'asc' | 'desc'; readonly pageSize: number; readonly after?: string },
  ): Promise<SkillPage>
  /** Finds a version; the newest if none is given. */
  find(projectId: string, name: string, version?: number): Promise<SkillDetails | undefined>
  /** Reads a file. Undefined if there is no such skill, version or file. */
  read(projectId: string, name: string, version: number | undefined, path: string): Promise<Uint8Array | undefined>
  /** Lists versions, newest first. Undefined if there is no such skill. */
  versions(
    projectId: string,
    name: string,
    page: { readonly pageSize: number; readonly after?: string },
  ): Promise<SkillPage | undefined>
  /** Removes one version, or all. `server`: the skill exists but is the operator's. Runs that already have it keep it. */
  remove(projectId: string, name: string, version?: number): Promise<'removed' | 'none' | 'server'>
  lookUp(projectId: string, refs: readonly string[]): Promise<SkillOffers>
  close(): Promise<void>
}

/** The content of a skill version, on this machine. */
export interface SkillContent {
  readonly meta: SkillMeta
  readonly files: readonly SkillFile[]
  /** The text of SKILL.md after its front matter. */
  instructions(): Promise<string>
  /** Reads a file; undefined if the skill has no such file. */
  read(path: string): Promise<Uint8Array | undefined>
}

/** Contents of the skills of runs. Available even if the skill was removed from the registry since. */
export interface SkillCache {
  /** Undefined if the content no longer exists. */
  content(pin: SkillPin): Promise<SkillContent | undefined>
  /** The skills' folders on this machine, and their paths in the sandbox. */
  mounts(spec: Pick<RunSpec, 'skills'>): Promise<readonly Mount[]>
}

/** The path of a skill's folder in the sandbox. */
export function sandboxPath(name: string): string {
  return `/skills/${name}`
}
