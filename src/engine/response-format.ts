/** `responseFormat`: whether an answer is the JSON that the caller's schema asks for. */
import { createRequire } from 'node:module'
import type { ValidateFunction } from 'ajv'
import type { JsonSchema } from '../domain/interaction.ts'

/** The compiler is a hundred modules, loaded with the first schema. */
const load = createRequire(import.meta.url)

/** Compiles a caller's schema. Throws an Error that says what is wrong with it. */
export function compileSchema(schema: JsonSchema): ValidateFunction {
  const draft7 = typeof schema.$schema === 'string' && schema.$schema.includes('draft-07')
  const options = {
    ...{ strict: false, allErrors: false, validateFormats: false, addUsedSchema: false },
    // Written out at each place that refers to it, a part makes of a small schema a program of many megabytes.
    inlineRefs: false,
    // It would print the schema on our console.
    logger: false,
  } as const
  const { Ajv }: typeof import('ajv') = load('ajv')
  const { Ajv2020 }: typeof import('ajv/dist/2020.js') = load('ajv/dist/2020.js')
  return (draft7 ? new Ajv(options) : new Ajv2020(options)).compile(schema)
}

/** What is wrong with the answer, for the model to mend; undefined where nothing is. It may take for ever: check-answer.ts. */
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
