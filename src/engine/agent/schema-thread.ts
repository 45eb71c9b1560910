/** The thread that does one job of schema-checks.ts: `ready` once the compiler is loaded, then what was found. */
import { readlinkSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { JsonSchema } from '../../domain/interaction.ts'
import { compileSchema, faultOf, loadCompiler } from './response-format.ts'

export interface Job {
  readonly schema: JsonSchema
  /** Without it, the schema is compiled and nothing is checked. */
  readonly answer?: string
}

export type Reply =
  /** The compiler is loaded. `task`: the thread's directory below /proc. */
  | { readonly task: string }
  /** What is wrong with the schema, or with the answer; undefined where nothing is. */
  | { readonly fault: string | undefined }

const reply = (message: Reply) => parentPort!.postMessage(message)

function faultOfSchema(schema: JsonSchema): string | undefined {
  try {
    compileSchema(schema)
    return undefined
  } catch (error) {
    return String((error as Error).message)
  }
}

const { schema, answer } = workerData as Job
loadCompiler()
reply({ task: readlinkSync('/proc/thread-self') })
reply({ fault: answer === undefined ? faultOfSchema(schema) : faultOf(schema, answer) })
