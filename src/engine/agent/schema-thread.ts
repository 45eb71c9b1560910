/** The thread of one job of schema-checks.ts. It replies once when the compiler is loaded, then with the result. */
import { readlinkSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { JsonSchema } from '../../domain/interaction.ts'
import { compileSchema, faultOf, loadCompiler } from './response-format.ts'

export interface Job {
  readonly schema: JsonSchema
  /** Undefined: the schema is only compiled. */
  readonly answer?: string
}

export type Reply =
  /** Sent when the compiler is loaded. `task` is the thread's directory in /proc. */
  | { readonly task: string }
  /** The error in the schema or the answer; undefined if there is none. */
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
