/**
 * Files of a run by signed URL. They are served as downloads that browsers do not run, because a hostile HTML or SVG
 * file must not run in this server's origin.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { ErrandError } from '../../domain/errors.ts'
import type { StoredFile } from '../../domain/interaction.ts'
import type { Edge } from '../edge.ts'
import { openShare } from '../gate/gate.ts'
import { open } from '../openapi/route-docs.ts'
import { FILE_PATHS, type FileKind } from '../response/signed-urls.ts'

const params = z.object({
  projectId: z.string(),
  interactionId: z.string(),
  '*': z.string().meta({ description: 'The file’s name.' }),
})
const query = z.object({
  expires: z.string().meta({ description: 'Seconds since the Unix epoch.' }),
  signature: z.string(),
})

export function fileRoutes(app: FastifyInstance, edge: Edge): void {
  fileRoute(app, edge, 'output', {
    id: 'downloadFile',
    summary: 'Download an output file',
    description:
      'Returns the file as an attachment. Use the `url` of an entry in an interaction’s `files` unchanged: it is signed, valid for one hour, and needs no API key. An expired or changed URL is 404.',
  })
  fileRoute(app, edge, 'input', {
    id: 'downloadInputFile',
    summary: 'Download an input file',
    description:
      'Returns the file as an attachment. Use the `url` of an entry in an interaction’s `resolved.files` unchanged: it is signed, valid for one hour, and needs no API key. An expired or changed URL is 404.',
  })
}

interface Texts {
  readonly id: string
  readonly summary: string
  readonly description: string
}

function fileRoute(
  app: FastifyInstance,
  { engine, blobs, signer, inFlight }: Edge,
  kind: FileKind,
  texts: Texts,
): void {
  app.get<{ Params: z.infer<typeof params>; Querystring: z.infer<typeof query> }>(
    `${FILE_PATHS[kind]}/:projectId/:interactionId/*`,
    {
      config: { open: true },
      // A URL with missing parameters is 404, like one with a wrong signature.
      attachValidation: true,
      schema: open({
        ...texts,
        tag: 'Files',
        params,
        query,
        other: [
          'application/octet-stream',
          z.string().meta({ description: 'The file’s bytes, with the file’s media type.' }),
        ],
        errors: ['not_found', 'rate_limited'],
      }),
    },
    async (request, reply) => {
      const { projectId, interactionId, '*': name } = request.params
      const { expires, signature } = request.query
      const signed =
        !request.validationError && signer.verify({ kind, projectId, interactionId, name }, expires, signature)
      if (!signed) throw noFile()
      openShare(inFlight, request, reply, projectId)
      request.share?.take('streams', 1)
      const interaction = await engine.find(projectId, interactionId)
      const files = kind === 'input' ? interaction?.spec.inputFiles : interaction?.outputFiles
      const file = files?.find((candidate) => candidate.name === name)
      const bytes = file && (await blobs.open(file.blob))
      if (!file || !bytes) throw noFile()
      return fileHeaders(reply, file).send(bytes)
    },
  )
}

function fileHeaders(reply: FastifyReply, file: StoredFile): FastifyReply {
  const type = /^[\w.+-]+\/[\w.+-]+$/.test(file.mimeType) ? file.mimeType : 'application/octet-stream'
  return reply.headers({
    'Content-Type': type.startsWith('text/') ? `${type}; charset=utf-8` : type,
    'Content-Length': String(file.size),
    'Content-Disposition': attachment(file.name),
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': 'private, no-cache',
    ETag: `"${file.sha256}"`,
  })
}

/** `Content-Disposition` (RFC 6266) with the last part of the name: in ASCII for old clients, and in UTF-8. */
function attachment(name: string): string {
  const last = name.slice(name.lastIndexOf('/') + 1).toWellFormed()
  const ascii = last.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const utf8 = encodeURIComponent(last).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`
}

function noFile(): ErrandError {
  return new ErrandError(
    'not_found',
    'This link has expired or is not valid. Read the interaction again for a new one.',
  )
}
