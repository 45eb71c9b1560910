/** The skills API: a project's skills are uploaded, listed, read and deleted here; the operator's can be read. */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ErrandError } from '../../domain/errors.ts'
import { parseSkillRef } from '../../domain/skill.ts'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { headers, list, page, pageSizeOf } from '../request/queries.ts'
import { uploadOf } from '../request/upload-body.ts'

const SKILLS = '/v1beta/skills'
const SKILL = `${SKILLS}/:name(^[A-Za-z0-9@_-]+)`

const listQuery = z.object({ ...page, order: list.order })
const pageQuery = z.object(page)
const nameParam = z.object({
  name: z.string().meta({ description: '`pdf`, its newest version; or `pdf@3`.', examples: ['pdf'] }),
})
const versionParams = nameParam.extend({ version: z.string().meta({ description: 'A whole number from 1.' }) })
const zip = z
  .object({ file: z.string().meta({ format: 'binary', description: 'The zip.' }) })
  .meta({ title: 'SkillUpload', description: 'A skill’s zip as a field of a form.' })

type ByName = { Params: z.infer<typeof nameParam> }

const UPLOAD = `Registers a skill (the [agentskills.io](https://agentskills.io) convention) from a zip with \`SKILL.md\` at its root or in its one top folder. The body is the zip itself, or a form with it as \`file\`.

Another content under the same name is the next version: 1, 2, 3 …; the newest content again is the same version. Runs keep the version that they were accepted with. What the convention asks for and the skill lacks is 400, with all of it in \`details\`; what it would merely have otherwise is told in \`warnings\`. Zips that are encrypted, hold links, have names that leave the folder or collide, or overlap themselves are refused.`

export function skillRoutes(app: FastifyInstance, edge: Edge): void {
  const { skills, limits } = edge
  const { schemas } = edge.documented
  const shared = { tag: 'Skills', headers: z.object(headers.revision) } as const

  app.post(
    SKILLS,
    {
      config: { upload: true },
      schema: keyed({
        ...shared,
        id: 'uploadSkill',
        summary: 'Upload a skill',
        description: UPLOAD,
        body: zip,
        bodyTypes: ['application/zip', 'multipart/form-data'],
        answer: schemas.skill,
        errors: ['conflict'],
      }),
    },
    async (request, reply) => {
      request.share?.take('streams', 1)
      const added = await skills.addZip(request.caller.projectId, uploadOf(request, reply, limits.skillBytes))
      reply.header('Location', `${SKILLS}/${added.skill.name}`)
      return request.codec.skills.encodeAdded(added)
    },
  )

  app.get<{ Querystring: z.infer<typeof listQuery> }>(
    SKILLS,
    {
      schema: keyed({
        ...shared,
        id: 'listSkills',
        summary: 'List skills',
        description:
          'What the project’s runs can name: its own skills and the server’s, each at its newest version, a page at a time, by creation time.',
        query: listQuery,
        answer: schemas.skillList,
      }),
    },
    async (request) => {
      const { order = 'desc', pageToken } = request.query
      const identity = { path: SKILLS, order }
      const found = await skills.list(request.caller.projectId, {
        order,
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, pageToken),
      })
      return request.codec.skills.encodeList(found.skills, writePageToken(identity, found.next))
    },
  )

  app.get<ByName>(
    SKILL,
    {
      schema: keyed({
        ...shared,
        id: 'getSkill',
        summary: 'Read about a skill',
        description:
          'The newest version, or the one that is named: what its front matter says, its versions, its files.',
        params: nameParam,
        answer: schemas.skill,
        errors: ['not_found'],
      }),
    },
    async (request) => {
      const asked = parseSkillRef(request.params.name)
      const found = asked && (await skills.find(request.caller.projectId, asked.name, asked.version))
      if (!found) throw noSkill(request.params.name)
      return request.codec.skills.encode(found)
    },
  )

  app.delete<ByName>(
    SKILL,
    {
      schema: keyed({
        ...shared,
        id: 'deleteSkill',
        summary: 'Delete a skill',
        description:
          'All its versions, or the one that is named (`pdf@3`); 404 from then on. Running interactions keep what they have, and a number is never given out again. A skill of the server is its operator’s to remove: 409.',
        params: nameParam,
        answer: z.object({}),
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      const asked = parseSkillRef(request.params.name)
      const outcome = asked && (await skills.remove(request.caller.projectId, asked.name, asked.version))
      if (outcome === 'server') {
        throw new ErrandError('conflict', `The skill ${asked?.name} is the server's own: its operator can remove it.`)
      }
      if (outcome !== 'removed') throw noSkill(request.params.name)
      return {}
    },
  )

  versionRoutes(app, edge)
}

const SHOWN_BYTES = 256 * 1024
const fileQuery = z.object({ path: z.string().meta({ examples: ['SKILL.md'] }) })
const skillFile = z
  .object({ path: z.string(), size: z.int().meta({ description: 'Bytes.' }), text: z.string().optional() })
  .meta({ title: 'SkillFile', description: 'What is in a file of a skill.' })

function versionRoutes(app: FastifyInstance, { skills, documented }: Edge): void {
  const shared = { tag: 'Skills', headers: z.object(headers.revision), errors: ['not_found'] } as const
  app.get<ByName & { Querystring: z.infer<typeof pageQuery> }>(
    `${SKILL}/versions`,
    {
      schema: keyed({
        ...shared,
        id: 'listSkillVersions',
        summary: 'List a skill’s versions',
        description: 'Newest first.',
        params: nameParam,
        query: pageQuery,
        answer: documented.schemas.skillVersions,
      }),
    },
    async (request) => {
      const { name } = request.params
      const identity = { path: `${SKILLS}/${name}/versions` }
      const found = await skills.versions(request.caller.projectId, name, {
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, request.query.pageToken),
      })
      if (!found) throw noSkill(name)
      return request.codec.skills.encodeVersions(found.skills, writePageToken(identity, found.next))
    },
  )

  app.get<ByName & { Querystring: z.infer<typeof fileQuery> }>(
    `${SKILL}/file`,
    {
      schema: keyed({
        ...shared,
        id: 'readSkillFile',
        summary: 'Read a file of a skill',
        description: `One of its \`files\`, of the newest version or the one that is named (\`pdf@3\`). Text up to ${SHOWN_BYTES / 1024} KiB stands in \`text\`; of what is no text, or longer, the size alone is told.`,
        params: nameParam,
        query: fileQuery,
        answer: skillFile,
      }),
    },
    async (request) => {
      const { path } = request.query
      const asked = parseSkillRef(request.params.name)
      const bytes = asked && (await skills.read(request.caller.projectId, asked.name, asked.version, path))
      if (!bytes) throw noSkill(`${request.params.name}/${path}`)
      return { path, size: bytes.length, text: textOf(bytes) }
    },
  )

  app.get<{ Params: z.infer<typeof versionParams> }>(
    `${SKILL}/versions/:version`,
    {
      schema: keyed({
        ...shared,
        id: 'getSkillVersion',
        summary: 'Read one version of a skill',
        description: 'As `GET /v1beta/skills/{name}@{version}`: what its front matter says, and its files.',
        params: versionParams,
        answer: documented.schemas.skill,
      }),
    },
    async (request) => {
      const ref = `${request.params.name}@${request.params.version}`
      const asked = parseSkillRef(ref)
      const found = asked && (await skills.find(request.caller.projectId, asked.name, asked.version))
      if (!found) throw noSkill(ref)
      return request.codec.skills.encode(found)
    },
  )
}

function textOf(bytes: Uint8Array): string | undefined {
  return bytes.length <= SHOWN_BYTES && !bytes.includes(0) && isUtf8(bytes)
    ? new TextDecoder().decode(bytes)
    : undefined
}

function noSkill(ref: string): ErrandError {
  return new ErrandError('not_found', `There is no skill ${JSON.stringify(ref.slice(0, 100))}.`)
}
