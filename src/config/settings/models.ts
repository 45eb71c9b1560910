/** Models and their providers. */
import { parse as parseYaml } from 'yaml'
import * as z from 'zod'
import { ALL_PROVIDERS, findProvider, PROVIDER_NAMES } from '../../models/providers/registry.ts'
import { parameterSchemas } from '../parameter-schemas.ts'
import { type Setting, section, text } from '../setting.ts'

const price = z.number('must be a number of US dollars per million tokens').min(0, 'must not be negative')

const MISSING = {
  model: 'is missing: the provider’s own name for the model',
  baseUrl: 'is missing: the address of the model server, with /v1',
}

const NO_SEND_REASONING = `is for the provider ${ALL_PROVIDERS.filter((provider) => provider.takesSendReasoning)
  .map(({ name }) => name)
  .join(' or ')}; the others send reasoning back as they need it`

const variable = z
  .string('must be the name of an environment variable')
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable, not the key itself')

const HEADER_VALUE = /^[\x20-\x7e]*$/
/** Headers that the connection itself needs. */
const OWN_HEADERS = new Set(['host', 'connection', 'content-length', 'content-type', 'transfer-encoding'])
const KEY_HEADERS = new Set([
  'authorization',
  'api-key',
  'x-api-key',
  'x-goog-api-key',
  'proxy-authorization',
  'cookie',
])

function headersOf(value: z.ZodString) {
  const name = z
    .string()
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, 'is no name of an HTTP header')
    .refine((header) => !OWN_HEADERS.has(header.toLowerCase()), 'is a header that Errand sets')
  return z.record(name, value, 'must be a map from names of headers to values')
}

function refuseKeys(headers: Readonly<Record<string, string>>, context: z.RefinementCtx): void {
  for (const header of Object.keys(headers)) {
    if (!KEY_HEADERS.has(header.toLowerCase())) continue
    const message = 'holds a secret: put it into headersEnv, as the name of an environment variable'
    context.addIssue({ code: 'custom', path: [header], message })
  }
}

/** Fields of the body, in any provider's words, that hold the conversation or that Errand depends on. */
const OWN_FIELDS = new Set([
  ...['model', 'modelId', 'messages', 'input', 'contents', 'system', 'instructions', 'systemInstruction'],
  ...['tools', 'toolConfig', 'stream', 'stream_options'],
])

function refuseOwnFields(body: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  for (const field of Object.keys(body)) {
    if (OWN_FIELDS.has(field))
      context.addIssue({ code: 'custom', path: [field], message: 'is a field that Errand writes' })
  }
}

const model = z
  .strictObject(
    {
      provider: z.enum(PROVIDER_NAMES, `must be one of ${PROVIDER_NAMES.join(', ')}`),
      model: z.string('must be the provider’s own name for the model').min(1, 'must not be empty').optional(),
      baseUrl: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).optional(),
      apiKeyEnv: variable.optional(),
      price: z
        .strictObject(
          { input: price, output: price, cachedInput: price.optional(), cacheWrite: price.optional() },
          'must be {input, output}, and may have cachedInput and cacheWrite',
        )
        .optional(),
      vision: z.boolean('must be true or false').optional(),
      documents: z.boolean('must be true or false').optional(),
      maxTries: z.int('must be a whole number').min(1, 'must be at least 1').max(10, 'must be at most 10').optional(),
      idleTimeoutS: z.number('must be a number of seconds').positive('must be above 0').optional(),
      sendReasoning: z.boolean('must be true or false').optional(),
      ...parameterSchemas<undefined>({ optional: (schema) => schema.optional(), strict: true }),
      cache: z.enum(['auto', 'off'], 'must be auto or off').optional(),
      contextWindow: z
        .int('must be a whole number of tokens')
        .min(1_000, 'must be at least 1000 tokens')
        .max(100_000_000, 'must be at most 100000000 tokens')
        .optional(),
      maxOutputTokens: z.int('must be a whole number').min(1, 'must be at least 1').optional(),
      headers: headersOf(z.string('must be a text').regex(HEADER_VALUE, 'must be one line of printable characters'))
        .superRefine(refuseKeys)
        .optional(),
      headersEnv: headersOf(variable).optional(),
      extraBody: z
        .record(z.string(), z.unknown(), 'must be a map of fields of the request body')
        .superRefine(refuseOwnFields)
        .optional(),
      fallbacks: z
        .array(z.string('must be a name of models'), 'must be a list of names of models')
        .max(5, 'must be at most 5 names')
        .optional(),
    },
    'must be a map with provider, model, …',
  )
  .superRefine((entry, context) => {
    const provider = findProvider(entry.provider)!
    for (const field of provider.requires) {
      if (entry[field] === undefined) context.addIssue({ code: 'custom', path: [field], message: MISSING[field] })
    }
    if (!provider.takesSendReasoning && entry.sendReasoning !== undefined) {
      context.addIssue({ code: 'custom', path: ['sendReasoning'], message: NO_SEND_REASONING })
    }
  })
  .transform((entry) => ({ ...entry, model: entry.model ?? entry.provider }))

const models = z.record(
  z.string().regex(/^[\w][\w.:/-]{0,127}$/, 'is no model name: letters, digits and . _ : / - are allowed'),
  model,
  'must be a map from names to models',
)

export const MODEL_SETTINGS: readonly Setting[] = [
  text('defaultModel', {
    must: 'a model name',
    pattern: /^[\w][\w.:/-]{0,127}$/,
    doc: 'Model of requests that name none, directly or by an agent. Default: `svc-3.5-flash`, or the first of `models` if that name is not configured.',
  }),
  section('models', {
    must: 'a map from names to models',
    schema: models,
    parse: (value) => parseYaml(value, { logLevel: 'error' }),
    fallback: {},
    doc: 'Model names and their providers (see [Models](#models)). If empty, Errand uses known keys in the environment, else a model server on loopback, else the demo model.',
  }),
]
