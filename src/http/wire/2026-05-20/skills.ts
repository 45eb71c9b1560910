/** Skills in revision 2026-05-20: answer schemas and encoding. Uploads are zips, so there are no request schemas. */
import { z } from 'zod'
import { type Skill, type SkillPin, skillRef } from '../../../domain/skill.ts'
import type { Body, SkillCodec } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { nextPageToken, time } from './common-fields.ts'

const digestAnswer = () => z.string().meta({ examples: [`sha256:${'0123456789abcdef'.repeat(4)}`] })

const fields = {
  name: z.string().meta({ examples: ['pdf'] }),
  version: z.int().min(1).meta({ description: 'Starts at 1. Each upload with different content is a new version.' }),
  description: z.string().meta({ description: 'What the skill does and when to use it. The model sees this.' }),
  license: z.string().optional(),
  compatibility: z.string().optional().meta({ description: 'What the skill needs from its environment.' }),
  metadata: z.record(z.string(), z.string()),
  allowedTools: z.array(z.string()).meta({
    description:
      'Tools that the skill uses, as its author wrote them. They are not enabled by this: a run whose `tools` lack one gets a warning.',
    examples: [['Bash(git:*)', 'Read']],
  }),
  source: z.enum(['project', 'server']).meta({
    description:
      '`project`: uploaded to this project. `server`: installed by the operator for every project. A project’s skill overrides the server’s with the same name.',
  }),
  digest: digestAnswer().meta({
    description: 'SHA-256 digest of the content. The same content always has the same digest.',
  }),
  size: z.int().meta({ description: 'Total size of the unpacked files, in bytes.' }),
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
      .meta({ description: 'All versions, newest first.', examples: [[3, 2, 1]] }),
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
      .meta({ description: 'Files in the skill’s folder.' }),
    warnings: z
      .array(z.looseObject({ code: z.string(), message: z.string() }))
      .optional()
      .meta({ description: 'Only in the answer to POST: where the skill deviates from the format.' }),
  })
  .meta({ title: 'Skill', description: 'A named, versioned set of instructions, scripts and reference files.' })

export const skillSchemas = {
  skill,
  skillList: z.object({ skills: z.array(summary), nextPageToken }).meta({ title: 'SkillList' }),
  skillVersions: z.object({ versions: z.array(summary), nextPageToken }).meta({ title: 'SkillVersionList' }),
}

export const skillCodec: SkillCodec = {
  encode: ({ skill, files, versions }) => ({ ...encodeSummary(skill), versions, files }),
  encodeAdded({ skill, warnings: messages }) {
    const warnings = messages.map((message) => ({ code: 'skill_format', param: 'file', message }))
    return { ...encodeSummary(skill), ...(warnings.length > 0 ? { warnings } : {}) }
  },
  encodeList: (skills, nextPageToken) => ({ skills: skills.map(encodeSummary), nextPageToken }),
  encodeVersions: (skills, nextPageToken) => ({ versions: skills.map(encodeSummary), nextPageToken }),
}

/** The skill versions of a run: `skills`, and `skillDigests` if it has any. */
export function encodePins(pins: readonly SkillPin[]): Body {
  const digests = Object.fromEntries(pins.map((pin) => [skillRef(pin), sha256(pin)]))
  return { skills: pins.map(skillRef), ...(pins.length > 0 ? { skillDigests: digests } : {}) }
}

function encodeSummary(skill: Skill): Body {
  const { description, license, compatibility, metadata = {}, allowedTools } = skill.meta
  return {
    name: skill.name,
    version: skill.version,
    description,
    license,
    compatibility,
    metadata,
    allowedTools,
    source: skill.origin,
    digest: sha256(skill),
    size: skill.size,
    fileCount: skill.fileCount,
    createTime: rfc3339(skill.createdAt),
    updateTime: rfc3339(skill.updatedAt),
  }
}

function sha256({ digest }: Pick<SkillPin, 'digest'>): string {
  return `sha256:${digest}`
}
