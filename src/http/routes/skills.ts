/** The skills API: uploads, lists, reads and deletes a project's skills. The operator's skills are read-only. */
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
  name: z.string().meta({ description: '`pdf` for the newest version, or `pdf@3`.', examples: ['pdf'] }),
})
const versionParams = nameParam.extend({ version: z.string().meta({ description: 'A version number, from 1.' }) })
const zip = z
  .object({ file: z.string().meta({ format: 'binary', description: 'The zip.' }) })
  .meta({ title: 'SkillUpload', description: 'A skill’s zip as a form field.' })

type ByName = { Params: z.infer<typeof nameParam> }

const UPLOAD = `Uploads a skill (in the [agentskills.io](https://agentskills.io) format) as a zip with \`SKILL.md\` at its root or in its only top-level folder. Send the zip as the body, or as the form field \`file\`.

New content under an existing name becomes the next version: 1, 2, 3 …; uploading the newest content again changes nothing. Runs keep the version that they were accepted with. A skill that violates the format is 400, and \`details\` lists all problems; deviations from its recommendations are reported in \`warnings\`. Zips that are encrypted, contain links, have names that leave the folder or collide, or have overlapping entries are refused.`

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
          'Returns the skills that the project’s runs can use (its own and the server’s) in pages, by creation time, each at its newest version.',
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
        summary: 'Read a skill',
        description:
          'Returns the front matter, versions and files of the newest version, or of the version in the path (`pdf@3`).',
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
          'Deletes all versions, or only the version in the path (`pdf@3`). Running interactions keep their version, and version numbers are never reused. The server’s own skills can’t be deleted: 409.',
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
  .meta({ title: 'SkillFile', description: 'A file of a skill.' })

function versionRoutes(app: FastifyInstance, { skills, documented }: Edge): void {
  const shared = { tag: 'Skills', headers: z.object(headers.revision), errors: ['not_found'] } as const
  app.get<ByName & { Querystring: z.infer<typeof pageQuery> }>(
    `${SKILL}/versions`,
    {
      schema: keyed({
        ...shared,
        id: 'listSkillVersions',
        summary: 'List a skill’s versions',
        description: 'Returns the versions, newest first.',
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
        description: `Returns one of the \`files\` of the newest version, or of the version in the path (\`pdf@3\`). \`text\` has the content of text files up to ${SHOWN_BYTES / 1024} KiB; for other files, only the size is returned.`,
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
        description: 'The same as `GET /v1beta/skills/{name}@{version}`: returns the front matter and the files.',
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
