/**
 * A skill: a folder of instructions with scripts and references (agentskills.io), kept under a name in numbered versions.
 * A version never changes; a run is pinned to the versions that it was accepted with.
 */

/** What the front matter of its SKILL.md says. */
export interface SkillMeta {
  /** Whole; what says when a model should use it. */
  readonly description: string
  readonly license?: string
  readonly compatibility?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** As written, one tool each: `Bash(git:*)`, `Read`, `code_execution`. */
  readonly allowedTools: readonly string[]
}

export interface SkillFile {
  /** Relative to the skill's folder, `/`-separated, checked. */
  readonly path: string
  /** Bytes. */
  readonly size: number
  readonly executable: boolean
  /** Hexadecimal. */
  readonly sha256: string
}

/** `server`: the operator's, there for every project. A project's own of the same name goes before it. */
export type SkillOrigin = 'project' | 'server'

/** What a run holds on to. */
export interface SkillPin {
  readonly name: string
  readonly version: number
  /** Of the content: names, execute bits and bytes of all files. Hexadecimal. */
  readonly digest: string
}

/** One version of a skill. */
export interface Skill extends SkillPin {
  readonly origin: SkillOrigin
  readonly meta: SkillMeta
  /** All files together, bytes. */
  readonly size: number
  readonly fileCount: number
  /** When the skill was first registered, and when this version was: milliseconds since 1970. */
  readonly createdAt: number
  readonly updatedAt: number
}

/** What a run may be given of a skill that was asked for. */
export interface SkillOffer extends SkillPin {
  readonly allowedTools: readonly string[]
}

/** `pdf` (the newest) or `pdf@3`. Undefined for what can be neither. */
export function parseSkillRef(ref: string): { readonly name: string; readonly version?: number } | undefined {
  const [, name, version] = /^([a-z0-9-]{1,64})(?:@([1-9]\d{0,8}))?$/.exec(ref) ?? []
  return name === undefined ? undefined : { name, version: version === undefined ? undefined : Number(version) }
}

export function skillRef({ name, version }: Pick<SkillPin, 'name' | 'version'>): string {
  return `${name}@${version}`
}
