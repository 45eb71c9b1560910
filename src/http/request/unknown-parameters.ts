/**
 * Unknown query parameters. Like unknown fields of a body they are ignored, with a warning: in a header of every response, and
 * in `warnings` of responses that have that field.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Warning } from '../../domain/event.ts'
import { LABEL_FILTER, LABEL_PREFIX } from './queries.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** A warning for each query parameter that the route does not have. */
    ignored: readonly Warning[]
  }
}

/** `unknown_parameter;param="pagesize"`, several by comma: a list of tokens with parameters (RFC 9651). */
export const WARNING_HEADER = 'X-Errand-Warning'
const MAX_WARNINGS = 20
const MAX_NAME_CHARS = 80

/** Sets the header and `request.ignored`. Pages and files of the console and the documentation have no parameters of ours. */
export function warnOfUnknownParameters(request: FastifyRequest, reply: FastifyReply): void {
  const { schema } = request.routeOptions
  const names = schema && !schema.hide ? unknownIn(request.query as object, schema.querystring) : []
  request.ignored = names.map((name) => {
    const message = `There is no query parameter \`${name}\` here; it was ignored.`
    return { code: 'unknown_parameter', param: name, message }
  })
  if (names.length === 0) return
  // Percent-encoded: a header and a string in it have fewer characters than a name.
  const items = names.map((name) => `unknown_parameter;param="${encodeURIComponent(name)}"`)
  reply.header(WARNING_HEADER, items.join(', '))
}

/** At most 20, each cut to 80 characters. */
function unknownIn(query: object, schema: unknown): string[] {
  const known = schema instanceof z.ZodObject ? schema.shape : {}
  const isKnown = (name: string) =>
    Object.hasOwn(known, name) || (LABEL_FILTER in known && name.startsWith(LABEL_PREFIX))
  const unknown = Object.keys(query).filter((name) => !isKnown(name))
  return unknown.slice(0, MAX_WARNINGS).map((name) => name.slice(0, MAX_NAME_CHARS).toWellFormed())
}
