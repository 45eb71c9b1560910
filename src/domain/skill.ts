/**
 * A skill: a folder of instructions with scripts and references (agentskills.io), kept under a name in numbered versions.
 * A version never changes; a run is pinned to the versions that it was accepted with.
 */

/** The front matter of SKILL.md. */
export interface SkillMeta {
  /** Says when a model should use the skill. Never truncated. */
  readonly description: string
  readonly license?: string
  readonly compatibility?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** One tool each, as written: `Bash(git:*)`, `Read`, `code_execution`. */
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

/** `server`: provided by the operator to every project. A project's own skill of the same name takes precedence. */
export type SkillOrigin = 'project' | 'server'

/** The exact version of a skill that a run uses. */
export interface SkillPin {
  readonly name: string
  readonly version: number
  /** SHA-256 of names, execute bits and bytes of all files, hexadecimal. */
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

/** A skill that is available to a run. */
export interface SkillOffer extends SkillPin {
  readonly allowedTools: readonly string[]
}

/** Parses `pdf` (the newest version) or `pdf@3`. Undefined for any other form. */
export function parseSkillRef(ref: string): { readonly name: string; readonly version?: number } | undefined {
  const [, name, version] = /^([a-z0-9-]{1,64})(?:@([1-9]\d{0,8}))?$/.exec(ref) ?? []
  return name === undefined ? undefined : { name, version: version === undefined ? undefined : Number(version) }
}

export function skillRef({ name, version }: Pick<SkillPin, 'name' | 'version'>): string {
  return `${name}@${version}`
}
