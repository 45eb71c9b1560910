/** Skills on the wire: what is answered of a skill, its versions and its files. They are sent as zips, not as JSON. */
import { z } from 'zod'
import { type Skill, type SkillPin, skillRef } from '../../domain/skill.ts'
import type { AddedSkill, SkillDetails } from '../../skills/port.ts'
import type { Body } from './codec.ts'
import { rfc3339 } from './time.ts'

const time = () => z.iso.datetime().meta({ examples: ['2026-05-20T09:30:00.000Z'] })
const digest = () => z.string().meta({ examples: [`sha256:${'0123456789abcdef'.repeat(4)}`] })

const fields = {
  name: z.string().meta({ examples: ['pdf'] }),
  version: z.int().min(1).meta({ description: 'From 1; each upload with another content is the next.' }),
  description: z.string().meta({ description: 'What it does and when to use it, as the model is told.' }),
  license: z.string().optional(),
  compatibility: z.string().optional().meta({ description: 'What it asks of its surroundings.' }),
  metadata: z.record(z.string(), z.string()),
  allowedTools: z.array(z.string()).meta({
    description:
      'The tools that it counts on, as written. They enable nothing: a run whose `tools` lack them is warned.',
    examples: [['Bash(git:*)', 'Read']],
  }),
  source: z.enum(['project', 'server']).meta({
    description: '`server`: the operator’s, there for every project. A project’s own of that name goes before it.',
  }),
  digest: digest().meta({ description: 'Of the content: the same content has the same one everywhere.' }),
  size: z.int().meta({ description: 'All files together, unpacked, bytes.' }),
  fileCount: z.int(),
  createTime: time(),
  updateTime: time().meta({ description: 'When this version was uploaded.' }),
}

const summary = z.object(fields).meta({ title: 'SkillSummary', description: 'One version of a skill.' })

const skill = z
  .object({
    ...fields,
    versions: z
      .array(z.int())
      .optional()
      .meta({ description: 'All there are, newest first.', examples: [[3, 2, 1]] }),
    files: z
      .array(
        z.object({
          path: z.string().meta({ examples: ['scripts/fill_form.py'] }),
          size: z.int(),
          executable: z.boolean(),
          sha256: z.string(),
        }),
      )
      .optional()
      .meta({ description: 'What is in its folder.' }),
    warnings: z
      .array(z.looseObject({ code: z.string(), message: z.string() }))
      .optional()
      .meta({ description: 'On the answer to POST alone: what the convention would have otherwise.' }),
  })
  .meta({ title: 'Skill', description: 'A skill: instructions, scripts and references under a name, in versions.' })

const nextPageToken = z.string().optional().meta({ description: 'For the next page; absent on the last one.' })

export const skillSchemas = {
  skill,
  skillList: z.object({ skills: z.array(summary), nextPageToken }).meta({ title: 'SkillList' }),
  skillVersions: z.object({ versions: z.array(summary), nextPageToken }).meta({ title: 'SkillVersionList' }),
}

export function encodeSkill({ skill: of, files, versions }: SkillDetails): Body {
  return { ...encodeSummary(of), versions, files }
}

export function encodeAddedSkill({ skill: added, warnings }: AddedSkill): Body {
  const told = warnings.map((message) => ({ code: 'skill_format', param: 'file', message }))
  return { ...encodeSummary(added), ...(told.length > 0 ? { warnings: told } : {}) }
}

export function encodeSkillList(skills: readonly Skill[], nextPageToken: string | undefined): Body {
  return { skills: skills.map(encodeSummary), nextPageToken }
}

export function encodeSkillVersions(skills: readonly Skill[], nextPageToken: string | undefined): Body {
  return { versions: skills.map(encodeSummary), nextPageToken }
}

/** What a run holds on to: `skills`, and the digests where there are any. */
export function encodePins(pins: readonly SkillPin[]): Body {
  const digests = Object.fromEntries(pins.map((pin) => [skillRef(pin), sha256(pin)]))
  return { skills: pins.map(skillRef), ...(pins.length > 0 ? { skillDigests: digests } : {}) }
}

function encodeSummary(of: Skill): Body {
  const { description, license, compatibility, metadata = {}, allowedTools } = of.meta
  return {
    name: of.name,
    version: of.version,
    description,
    license,
    compatibility,
    metadata,
    allowedTools,
    source: of.origin,
    digest: sha256(of),
    size: of.size,
    fileCount: of.fileCount,
    createTime: rfc3339(of.createdAt),
    updateTime: rfc3339(of.updatedAt),
  }
}

function sha256({ digest: of }: Pick<SkillPin, 'digest'>): string {
  return `sha256:${of}`
}
