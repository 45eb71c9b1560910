/** A server's OpenAPI documents, and validation of responses against them. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

export interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly tags?: readonly string[]
  readonly security?: Record<string, unknown>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> }
  readonly responses: Record<string, { readonly $ref?: string; readonly content?: Record<string, { schema?: object }> }>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: object
}

/** Path of the document that describes all routes. */
export const EVERYTHING = '/console/openapi.json'

export interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Record<string, Record<string, Operation>>
  readonly security?: Record<string, unknown>[]
  readonly components?: Record<string, Record<string, object>>
}

export interface OpenApi {
  readonly document: OpenApiDocument
  readonly ajv: Ajv2020
  /** All operations with their methods and paths. */
  operations(): [string, string, Operation][]
  /**
   * Returns the operation and its path as in the document. `path` has `{}` for each parameter. Throws if it is not
   * documented.
   */
  operation(method: string, path: string): [string, Operation]
  /** Validates a value against the schema at `place`, a JSON pointer. Returns the errors, or an empty string. */
  complaints(place: string, value: unknown): string
  /** JSON pointer to the schema of a response. Throws if the status or media type is not documented. */
  schemaPlace(method: string, path: string, status: number, type: string): string
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

export const unnamed = (path: string) => path.replaceAll(/\{[^}]*\}/g, '{}')

export const pointer = (...parts: string[]) =>
  parts.map((part) => `/${encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')

/** The value at a JSON pointer. Undefined if there is none. */
export function resolveIn(document: OpenApiDocument, place: string): unknown {
  const parts = place.split('/').slice(1)
  const names = parts.map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
  // biome-ignore lint/suspicious/noExplicitAny: reads any document.
  return names.reduce<any>((value, name) => value?.[name], document)
}

/** Fetches the document at `path`. Default: the public API. */
export async function openApiOf(url: string, path = '/openapi.json'): Promise<OpenApi> {
  const document = (await (await fetch(url + path)).json()) as OpenApiDocument
  // OpenAPI 3.1 allows keywords such as `example` and `discriminator`, which strict mode refuses.
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'openapi')

  function operations(): [string, string, Operation][] {
    return Object.entries(document.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method): [string, string, Operation] => [
        method,
        path,
        item[method]!,
      ]),
    )
  }

  function operation(method: string, path: string): [string, Operation] {
    const found = operations().find(([itsMethod, itsPath]) => itsMethod === method && unnamed(itsPath) === path)
    if (!found) throw new Error(`${method} ${path} is not documented`)
    return [found[1], found[2]]
  }

  return {
    document,
    ajv,
    operations,
    operation,
    complaints(place, value) {
      const validate = ajv.getSchema(`openapi#${place}`) ?? ajv.compile({ $ref: `openapi#${place}` })
      return validate(value) ? '' : ajv.errorsText(validate.errors, { separator: '\n' })
    },
    schemaPlace(method, path, status, type) {
      const [name, { responses }] = operation(method, path)
      const key = responses[status]
        ? String(status)
        : `${String(status)[0]}XX` in responses
          ? `${String(status)[0]}XX`
          : 'default'
      const response = responses[key]
      if (!response) throw new Error(`${method} ${path} does not document ${status}`)
      const place = response.$ref?.slice(1) ?? pointer('paths', name, method, 'responses', key)
      const content = (resolveIn(document, place) as Operation['responses'][string]).content ?? {}
      const mediaType = Object.keys(content).find((known) => known.startsWith(type))
      if (!mediaType) throw new Error(`${method} ${path} ${status} does not document ${type}`)
      return `${place}${pointer('content', mediaType, 'schema')}`
    },
  }
}
