/**
 * `responseFormat`: checks whether an answer matches the caller's JSON Schema. Both functions may take arbitrarily long, so
 * they run in a separate thread (schema-checks.ts).
 */
import { createRequire } from 'node:module'
import type { ValidateFunction } from 'ajv'
import type { JsonSchema } from '../../domain/interaction.ts'

const load = createRequire(import.meta.url)

/** Loads the compiler. It consists of a hundred modules. */
export function loadCompiler() {
  const { Ajv }: typeof import('ajv') = load('ajv')
  const { Ajv2020 }: typeof import('ajv/dist/2020.js') = load('ajv/dist/2020.js')
  return { Ajv, Ajv2020 }
}

/** Compiles a caller's schema. Throws an Error that explains what is invalid. */
export function compileSchema(schema: JsonSchema): ValidateFunction {
  const draft7 = typeof schema.$schema === 'string' && schema.$schema.includes('draft-07')
  const options = {
    ...{ strict: false, allErrors: false, validateFormats: false, addUsedSchema: false },
    // Inlining every reference can turn a small schema into a program of many megabytes.
    inlineRefs: false,
    // The compiler would print the schema to our console.
    logger: false,
  } as const
  const { Ajv, Ajv2020 } = loadCompiler()
  return (draft7 ? new Ajv(options) : new Ajv2020(options)).compile(schema)
}

/** The error in the answer, for the model to correct; undefined if it is valid. */
export function faultOf(schema: JsonSchema, answer: string): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(answer)
  } catch (error) {
    return `it is not JSON (${(error as Error).message})`
  }
  const validate = compileSchema(schema)
  if (validate(value)) return undefined
  const [first] = validate.errors ?? []
  return `${first?.instancePath || 'the value'} ${first?.message ?? 'is not valid'}`
}
