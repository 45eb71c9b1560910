/**
 * The OpenAPI 3.1 documents, generated from the routes and the schemas that validate: one of all routes, which the console
 * uses, and one of the public API. This file also adds what many operations share: response headers, and references to shared
 * schemas.
 */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { createJsonSchemaTransform } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { WARNING_HEADER } from '../request/unknown-parameters.ts'
import { EVENTS_TEXT, INTRODUCTION } from './api-texts.ts'

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json | undefined }
export type JsonObject = { [key: string]: Json | undefined }

/** The tag of calls that are the console's own. */
export const CONSOLE_TAG = 'Console'

/** `app.swagger()` is the document of everything that is served; see `publicApiOf` and `servedFrom`. */
export async function registerOpenApi(app: FastifyInstance, shared: SharedSchemas): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Errand API',
        version: '2026-05-20',
        description: `${INTRODUCTION}\n\n${EVENTS_TEXT}`,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      tags: [
        { name: 'Interactions', description: 'Run agents.' },
        { name: 'Agents', description: 'Store agent configurations.' },
        { name: 'Credentials', description: 'Store secrets that runs authenticate with. Secrets are never returned.' },
        { name: 'Skills', description: 'Upload instructions, scripts and reference files that runs can use by name.' },
        { name: 'Files', description: 'Download the files of runs.' },
        { name: CONSOLE_TAG, description: 'Calls of the web console: sign-in, keys, members, usage.' },
        { name: 'Server', description: 'Read about the server.' },
      ],
      components: {
        securitySchemes: {
          apiKey: { type: 'apiKey', in: 'header', name: 'x-svc-api-key', description: 'An API key of a project.' },
          session: {
            type: 'apiKey',
            in: 'cookie',
            name: 'errand_session',
            description:
              'The console’s session cookie. Over https its name begins with `__Host-`. Requests other than GET and HEAD must come from the console’s own site and have the header `X-Errand-Console`.',
          },
        },
      },
    },
    transform: createJsonSchemaTransform({}),
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new Error('the document is OpenAPI 3')
      return finish(JSON.parse(JSON.stringify(document.openapiObject)), shared) as typeof document.openapiObject
    },
  })
}

/** The document without the console's own calls, their way to sign in, and the schemas that only they use. */
export function publicApiOf(document: JsonObject): JsonObject {
  const paths: JsonObject = {}
  for (const [path, operations] of Object.entries(document.paths as Record<string, Record<string, JsonObject>>)) {
    const kept = Object.entries(operations).filter(([, { tags }]) => !(tags as string[]).includes(CONSOLE_TAG))
    if (kept.length > 0) paths[path] = Object.fromEntries(kept)
  }
  const { schemas = {}, securitySchemes, ...components } = document.components as Record<string, JsonObject>
  const { session: _, ...schemes } = securitySchemes as JsonObject
  const used = schemasIn([paths, document.webhooks], schemas)
  return {
    ...document,
    tags: (document.tags as JsonObject[]).filter(({ name }) => name !== CONSOLE_TAG),
    paths,
    components: {
      ...components,
      securitySchemes: schemes,
      schemas: Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name))),
    },
  }
}

/** The names of the shared schemas that `node` refers to, directly or through other schemas. */
export function schemasIn(node: unknown, schemas: JsonObject): ReadonlySet<string> {
  const found = new Set<string>()
  const look = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (found.has(name)) continue
      found.add(name)
      look(schemas[name])
    }
  }
  look(node)
  return found
}

/** The document with `url` as the address of its server. */
export function servedFrom(document: JsonObject, url: string): JsonObject {
  return { ...document, servers: [{ url }] }
}

/** Schemas that no route has. */
export interface SharedSchemas {
  readonly webhookEvent: z.ZodType
  readonly streamEvent: z.ZodType
}

function toJsonSchema(type: z.ZodType): JsonObject {
  const { $schema: _, ...schema } = z.toJSONSchema(type, { target: 'draft-2020-12', reused: 'inline' }) as JsonObject
  return schema
}

/** The webhook request, which this server sends. */
function webhookOperation(event: z.ZodType): JsonObject {
  const header = (name: string, description: string) => {
    return { name, in: 'header', required: true, description, schema: { type: 'string' } }
  }
  return {
    operationId: 'interactionEnded',
    tags: ['Interactions'],
    summary: 'An interaction has ended',
    description: 'Sent to `webhook.url` at least once, signed according to Standard Webhooks. See docs/webhooks.md.',
    // It carries a signature instead of a key.
    security: [],
    parameters: [
      header('webhook-id', 'The interaction’s id: the same on every attempt.'),
      header('webhook-timestamp', 'Seconds since 1970.'),
      header('webhook-signature', '`v1,` and the HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}` in base64.'),
    ],
    requestBody: { required: true, content: { 'application/json': { schema: toJsonSchema(event) } } },
    responses: {
      '2XX': { description: 'Delivered.' },
      '410': { description: 'The webhook is not called again.' },
      default: { description: 'Retried later.' },
    },
  }
}

function finish(document: JsonObject, { webhookEvent, streamEvent }: SharedSchemas): JsonObject {
  nameWildcards(document.paths as Record<string, JsonObject>)
  for (const operations of Object.values(document.paths as Record<string, JsonObject>)) {
    for (const operation of Object.values(operations) as JsonObject[]) {
      addHeaders(operation)
      // The one body that may be left out.
      if (String(operation.operationId).startsWith('approve')) (operation.requestBody as JsonObject).required = false
      showZipAsBytes(operation)
    }
  }
  const schemas: JsonObject = {}
  document.paths = hoist(document.paths as Json, schemas)
  document.webhooks = hoist({ interactionEnded: { post: webhookOperation(webhookEvent) } }, schemas)
  const { $ref: event } = hoist(toJsonSchema(streamEvent), schemas) as JsonObject
  Object.assign(schemas.EventStream as JsonObject, {
    contentMediaType: 'text/event-stream',
    contentSchema: { type: 'array', items: { $ref: event } },
  })
  const components = document.components as JsonObject
  components.schemas = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)))
  components.headers = HEADERS
  return document
}

/** A zip that is sent as it is has no fields. */
function showZipAsBytes({ requestBody }: JsonObject): void {
  const content = (requestBody as { content?: JsonObject } | undefined)?.content
  if (content?.['application/zip']) content['application/zip'] = { schema: { type: 'string', format: 'binary' } }
}

/** Moves every schema with a title to the components, and leaves a reference. Schemas of one title are one schema. */
function hoist(node: Json, schemas: JsonObject): Json {
  if (Array.isArray(node)) return node.map((entry) => hoist(entry, schemas))
  if (typeof node !== 'object' || node === null) return node
  const copy: JsonObject = {}
  for (const [key, value] of Object.entries(node)) {
    copy[key] = key === 'examples' || key === 'example' ? value : hoist(value as Json, schemas)
  }
  withNullAsType(copy)
  if (typeof copy.title !== 'string') return copy
  schemas[copy.title] = copy
  return { $ref: `#/components/schemas/${copy.title}` }
}

/** `anyOf: [{type: "string"}, {type: "null"}]` says in two schemas what `type: ["string", "null"]` says in one. */
function withNullAsType(schema: JsonObject): void {
  const [only, none, ...more] = (schema.anyOf ?? []) as JsonObject[]
  if (!only || none?.type !== 'null' || more.length > 0 || typeof only.type !== 'string') return
  delete schema.anyOf
  Object.assign(schema, { ...only, ...schema, type: [only.type, 'null'] })
  if (Array.isArray(only.enum)) schema.enum = [...only.enum, null]
}

/** The router's `*` is a file's name, which has slashes in it. */
function nameWildcards(paths: Record<string, JsonObject>): void {
  for (const [path, operations] of Object.entries(paths)) {
    if (!path.endsWith('{*}')) continue
    for (const { parameters } of Object.values(operations) as { parameters: JsonObject[] }[]) {
      for (const parameter of parameters) if (parameter.name === '*') parameter.name = 'name'
    }
    paths[path.replace('{*}', '{name}')] = operations
    delete paths[path]
  }
}

const HEADERS: JsonObject = {
  'X-Request-Id': header('Identifies this request in the server’s log.'),
  'Api-Revision': header('The revision that was used.'),
  [WARNING_HEADER]: header(
    'The query parameters that this call does not have and that were ignored: `unknown_parameter;param="pagesize"`, several by comma, the names percent-encoded.',
  ),
  RateLimit: header('Remaining quota: `"calls";r=599;t=42` (r calls, t seconds until the window ends).'),
  'RateLimit-Policy': header('The quotas of a project: `"calls";q=600;w=60` (q calls in w seconds).'),
  'X-RateLimit-Limit': header('Calls of this kind that are allowed in a window.', 'integer'),
  'X-RateLimit-Remaining': header('Calls of this kind that remain in this window.', 'integer'),
  'X-RateLimit-Reset': header('Seconds until the window ends.', 'integer'),
  'Retry-After': header('Seconds to wait before trying again.', 'integer'),
  'X-Interaction-Id': header('The interaction’s id.'),
  Location: header('Path of the created resource.'),
  'Idempotent-Replayed': header(
    '`true` if the request joined the run of an earlier request with its `Idempotency-Key`.',
  ),
  'Preference-Applied': header('The preferences that this response follows.'),
  ETag: header('The agent’s `etag`.'),
}

const KEYED_HEADERS = [
  'RateLimit',
  'RateLimit-Policy',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
]

function header(description: string, type = 'string'): JsonObject {
  return { description, schema: { type } }
}

function addHeaders(operation: JsonObject): void {
  const keyed = (operation.security as JsonObject[]).some(({ apiKey }) => apiKey)
  const id = String(operation.operationId)
  for (const [status, answer] of Object.entries(operation.responses as Record<string, JsonObject>)) {
    const names = ['X-Request-Id']
    if (keyed && status !== '401' && status !== '403') names.push(...KEYED_HEADERS)
    if (keyed && status === '200') names.push('Api-Revision', ...ownHeaders(id))
    if (status === '200') names.push(WARNING_HEADER)
    if (['429', '500', '503'].includes(status)) names.push('Retry-After')
    answer.headers = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
  }
}

function ownHeaders(operationId: string): string[] {
  if (/^createInteraction/.test(operationId)) {
    return ['X-Interaction-Id', 'Location', 'Idempotent-Replayed', 'Preference-Applied']
  }
  if (/^streamInteraction/.test(operationId)) return ['X-Interaction-Id', 'Location', 'Preference-Applied']
  if (/^(get|list|cancel|approve)Interaction/.test(operationId)) return ['Preference-Applied']
  if (operationId === 'createCredential' || operationId === 'uploadSkill') return ['Location']
  if (operationId === 'createAgent') return ['Location', 'ETag', 'Preference-Applied']
  if (/^(get|update)Agent/.test(operationId)) return ['ETag']
  return []
}
